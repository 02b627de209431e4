package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/importer"
)

// Commits that an agent has made anywhere in its repository are saved once.
func TestOtherCommits(t *testing.T) {
	t.Parallel()
	const work = "echo x >done; git add done; git commit -qm work; "
	for name, c := range map[string]struct{ do, file string }{
		"branch":             {"git checkout -qb other; echo p >u; git add u; git commit -qm u; git checkout -q -", "u"},
		"tag":                {"git checkout -q --detach; echo p >u; git add u; git commit -qm u; git tag t; git checkout -q -", "u"},
		"annotated tag":      {"git checkout -q --detach; echo p >u; git add u; git commit -qm u; git tag -am t t; git checkout -q -", "u"},
		"stash":              {"echo p >u; git add u; git stash -q", "u"},
		"older stash":        {"echo p >u; git add u; git stash -q; echo q >v; git add v; git stash -q; git update-ref -d refs/heads/none", "u"},
		"packed":             {"git checkout -qb other; echo p >u; git add u; git commit -qm u; git checkout -q -; git gc -q", "u"},
		"with uncommitted":   {"echo p >u; git add u; git stash -q; echo draft >draft", "u"},
		"without other work": {"git reset -q --hard HEAD^; echo p >u; git add u; git stash -q", "u"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.workIn("k", "r1", true, work+c.do)
			for try := range 2 {
				got := f.imported(tree)
				all := ""
				for _, commit := range got.Others {
					all += f.git("ls-tree", "-r", "--name-only", commit) + "\n"
					if f.ref("refs/ralph/old/k/other-"+commit[:12]) != commit {
						t.Errorf("no ref has %s", commit)
					}
				}
				if !strings.Contains(all, c.file+"\n") {
					t.Fatalf("import %d: others have %q", try, all)
				}
				if saved := got.WIP != ""; saved != strings.Contains(c.do, "draft") {
					t.Errorf("uncommitted changes: %+v", got)
				}
				f.use(tree)
			}
			if packs, _ := os.ReadDir(tree.givenDir() + "/pack"); len(packs) > 4 {
				t.Errorf("they are sent again: %v", packs)
			}
			f.imported(tree)
			f.git("fsck", "--strict")
			f.remove(tree)
		})
	}
}

// Commits that are not the agent's work are not saved.
func TestNoOtherCommits(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{
		"nothing":       "true",
		"base":          "git branch same main; git tag t main",
		"branch":        "git commit -q --allow-empty -m x; git branch same; git tag t; git commit -q --allow-empty -m y",
		"fetched":       "git commit -q --allow-empty -m x; git update-ref refs/remotes/o/m HEAD; git tag t; git reset -q --hard HEAD^",
		"tag of a file": "git tag t HEAD:a.txt",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.workIn("k", "r1", true, do)
			if got := f.imported(tree); len(got.Others) > 0 {
				t.Errorf("imported %+v", got)
			}
			f.remove(tree)
		})
	}
}

// A branch with a missing commit hides no other branch.
func TestOtherCommitsBesideOneThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, `git checkout -qb other; git commit -q --allow-empty -m other; git checkout -q -
git rev-parse HEAD | tr 0-9a-f 1-9a-f0 >"$(git rev-parse --git-path refs/heads/gone)"`)
	got, err := tree.Import(t.Context(), boxed(tree))
	if err != nil || len(got.Others) != 1 || f.git("log", "-1", "--format=%s", got.Others[0]) != "other" {
		t.Errorf("imported %+v, error %v", got, err)
	}
}

// Refused or broken commits of other branches affect nothing else.
func TestRefusedOtherCommits(t *testing.T) {
	t.Parallel()
	const submodule = `printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n\tupdate = !touch x\n' >.gitmodules; `
	for name, do := range map[string]string{
		"old":     "git checkout -qb other; GIT_COMMITTER_DATE='2001-01-01 00:00:00' git commit -q --allow-empty -m u; git checkout -q -",
		"unsound": "git checkout -qb other; " + submodule + "git add .gitmodules; git commit -qm u; git checkout -q -",
		"broken":  "git checkout -qb other; echo p >u; git add u; git commit -qm u; o=$(git rev-parse HEAD:u); rm -f $GIT_DIR/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); git checkout -q -f ralph/k",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.workIn("k", "r1", true, "echo x >done; git add done; git commit -qm work; "+do+"; echo draft >draft")
			got, err := tree.Import(t.Context(), boxed(tree))
			if !importer.OnlyUnsaved(err) || !strings.Contains(err.Error(), "commits outside of the branch") {
				t.Errorf("the error is %v", err)
			}
			if len(got.Others) > 0 || got.WIP == "" || f.show(got.WIP, "draft") != "draft" || f.show(got.Tip, "done") != "x" {
				t.Errorf("imported %+v", got)
			}
			f.git("fsck", "--strict")
		})
	}
}

// An agent can tell git to ignore changes of files in the user's worktree.
func TestHiddenChanges(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--assume-unchanged", "--skip-worktree"} {
		f := newFixture(t)
		tree := f.workIn("k", "r1", false, "git update-index "+flag+" a.txt; echo changed >a.txt")
		if got := f.imported(tree); got.WIP == "" || f.show(got.WIP, "a.txt") != "changed" {
			t.Errorf("%s: imported %+v", flag, got)
		}
		f.remove(tree)
	}
}

// unprivileged imports a tree as a user who cannot read everything.
func unprivileged(ctx context.Context, tree *Tree) (Import, error) {
	in := boxed(tree)
	return tree.Import(ctx, func(ctx context.Context, c Command) (int, error) {
		if os.Geteuid() == 0 {
			c.Argv = append([]string{"setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all"}, c.Argv...)
		}
		return in(ctx, c)
	})
}

// A folder that the sandbox's user cannot read is named.
func TestClosedFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, "mkdir m; echo p >m/u; echo draft >draft; chmod 0 m")
	got, err := unprivileged(t.Context(), tree)
	if !importer.OnlyUnsaved(err) || !strings.Contains(err.Error(), "m/") {
		t.Errorf("the error is %v", err)
	}
	if got.WIP == "" || f.show(got.WIP, "draft") != "draft" {
		t.Errorf("imported %+v", got)
	}
}

// An agent cannot keep its commits from the import by closing the worktree, its repository, or what is in it.
func TestClosedRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, closed := range []string{".", `"$GIT_DIR"`, `"$GIT_DIR" .`, `"$GIT_DIR/objects"`, `"$GIT_DIR/refs"`, `"$GIT_DIR/HEAD"`, `"$GIT_DIR/index"`} {
		key := "k" + strconv.Itoa(i)
		tree := f.workIn(key, "r1", true, "echo x >done; git add done; git commit -qm work; echo draft >draft; chmod 0 "+closed)
		got, err := unprivileged(t.Context(), tree)
		if err != nil || got.New != 1 || got.WIP == "" || f.show(got.WIP, "draft") != "draft" {
			t.Errorf("after chmod 0 %s: imported %+v, %v", closed, got, err)
		}
		f.remove(tree)
	}
}

// A repository that cannot be read does not count as one without commits, and is kept for a person.
func TestUnreadableRepository(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, `echo x >done; git add done; git commit -qm work; chown 12345 "$GIT_DIR"; chmod 0 "$GIT_DIR"`)
	var aside *SetAsideError
	for range 2 {
		if got, err := unprivileged(t.Context(), tree); err == nil || !strings.Contains(err.Error(), "cannot be read") || got.Tip != tree.Start() {
			t.Fatalf("imported %+v, %v", got, err)
		}
		aside, _ = errors.AsType[*SetAsideError](tree.Remove(t.Context()))
	}
	if aside == nil {
		t.Fatal("not set aside")
	}
	for _, path := range []string{"files/done", "repository/objects"} {
		if _, err := os.Lstat(filepath.Join(aside.Dir, path)); err != nil {
			t.Error(err)
		}
	}
}

// A person who puts such a commit on the branch has chosen it: it does not count as a replaced tip.
func TestOtherCommitIsPushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.withRemote()
	tree := f.workIn("k", "r1", true, "echo x >done; git add done; git commit -qm work; git checkout -qb other; git commit -q --allow-empty -m u; git checkout -q -")
	got := f.imported(tree)
	if err := tree.Push(t.Context(), got.Tip, nil, ClaimRecord{}, false); err != nil || len(got.Others) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	f.remove(tree)
	f.git("push", "-q", "origin", got.Others[0]+":refs/heads/ralph/k")
	if next := f.add("k", "r2"); next.Start() != got.Others[0] {
		t.Errorf("the next run begins at %s, but on the branch is %s", next.Start(), got.Others[0])
	}
}

// Of too many branches the newest are saved, and a note says that others are not.
func TestTooManyOtherCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, "for i in $(seq 25); do git branch b$i $(git commit-tree -p HEAD -m $i HEAD^{tree}); done")
	got, err := tree.Import(t.Context(), boxed(tree))
	if len(got.Others) != 20 || !importer.OnlyUnsaved(err) || !strings.Contains(err.Error(), "5 of 25 branches, tags and stashes") {
		t.Errorf("%d are saved: %v", len(got.Others), err)
	}
}

// Commits outside of the branch that the host refuses are moved aside with the second import, whichever of them it names first.
func TestOldOtherCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, `echo x >done; git add done; git commit -qm work; export GIT_COMMITTER_DATE='1700000000 +0000'
		for i in $(seq 30); do git tag t$i $(git commit-tree -m $i HEAD^{tree}); done`)
	var removed error
	for range 2 {
		if got, err := tree.Import(t.Context(), boxed(tree)); !importer.OnlyUnsaved(err) || len(got.Commits) != 1 || len(got.Others) > 0 {
			t.Errorf("imported %+v, %v", got, err)
		}
		removed = tree.Remove(t.Context())
	}
	if aside, ok := errors.AsType[*SetAsideError](removed); !ok || !strings.Contains(aside.Cause, "older than the run") {
		t.Errorf("removed: %v", removed)
	}
}

// An agent on the host that replaces its folder by something else keeps no commit from the import.
func TestReplacedFolder(t *testing.T) {
	t.Parallel()
	for _, replace := range []string{"echo x >", "ln -s / "} {
		f := newFixture(t)
		tree := f.add("k", "r")
		f.sh(tree.Dir(), "git", "switch", "-q", "--detach")
		tip := f.commit(tree.Dir(), "b", "x", "mine")
		f.sh("", "sh", "-ec", "rm -rf "+tree.Dir()+"; "+replace+tree.Dir())
		got, err := tree.Import(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "not a directory") || got.Tip != tip || got.New != 1 || got.WIP != "" || f.ref("refs/ralph/work/k") != tip {
			t.Errorf("%s: imported %+v, %v; want %s", replace, got, err, tip)
		}
	}
}
