package worktree

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Uncommitted files that git's own check refuses are left out and named. All others are saved, and the user's repository
// stays sound.
func TestUnsoundChanges(t *testing.T) {
	t.Parallel()
	const submodule = `printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n\tupdate = !touch x\n'`
	tests := map[string]struct{ do, path string }{
		"a submodule that runs a command":      {submodule + ` > .gitmodules`, ".gitmodules"},
		"such a submodule below":               {`mkdir -p d/e; ` + submodule + ` > d/e/.gitmodules`, "d/e/.gitmodules"},
		"one whose content is there already":   {submodule + ` > .gitmodules; cp .gitmodules plain; git add plain; git commit -qm plain`, ".gitmodules"},
		"one under another name":               {submodule + ` > 'GITMOD~1'`, "GITMOD~1"},
		"a name that some hosts take for .git": {`mkdir d; echo x > "d/$(printf '.git\342\200\214')"`, "d/.git\u200c"},
		"such a folder":                        {`mkdir "$(printf '.g\342\200\214it')"; echo x > "$(printf '.g\342\200\214it')/config"`, ".g\u200cit/config"},
		"a link of a name that git reads":      {`ln -s a.txt 'GITMOD~1'`, "GITMOD~1"},
		"several":                              {`mkdir d; ` + submodule + ` | tee .gitmodules > d/.gitmodules; echo '#' >> .gitmodules`, ".gitmodules"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			in.sh("git commit -q --allow-empty -m work; " + test.do + "; echo y > undone; echo changed > a.txt")
			got, err := in.tree.Import(context.Background(), boxed(in.tree))
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), git.Printable(test.path)) {
				t.Errorf("error is %v", err)
			}
			if got.WIP == "" || f.repoShow(got.WIP, "undone") != "y" || f.repoShow(got.WIP, "a.txt") != "changed" {
				t.Fatalf("the others are not saved: %+v, %v", got, err)
			}
			if out, err := f.try(f.dir, "git", "cat-file", "-e", fmt.Sprintf("%s:%s", got.WIP, test.path)); err == nil {
				t.Errorf("it is saved: %s", out)
			}
			if out, err := f.try(f.dir, "git", "fsck", "--full", "--strict"); err != nil {
				t.Errorf("the user's repository is broken: %s", out)
			}
			if again, _ := in.tree.Import(context.Background(), boxed(in.tree)); again.WIP != got.WIP {
				t.Errorf("a second look: %+v, first %+v", again, got)
			}
		})
	}
}

// A file whose new content is refused keeps its committed content.
func TestUnsoundChangeOfACommittedFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh(`printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n' > .gitmodules; git add .; git commit -qm sound
		printf '\tupdate = !touch x\n' >> .gitmodules; echo y > undone`)
	got, err := in.tree.Import(context.Background(), boxed(in.tree))
	if err == nil || got.WIP == "" || f.repoShow(got.WIP, "undone") != "y" || strings.Contains(f.repoShow(got.WIP, ".gitmodules"), "update") {
		t.Errorf("%+v, %v", got, err)
	}
	if out, err := f.try(f.dir, "git", "fsck", "--full", "--strict"); err != nil {
		t.Errorf("the user's repository is broken: %s", out)
	}
}
