package publish_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// templating is a tracker whose forge has paths of its own.
type templating []string

func (p templating) RequestTemplates() []string { return p }

// The template is the one in the commit, with that of the tracker's forge first; links and very long files do not count.
func TestTemplate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		own   templating // the paths of the tracker's forge
		want  string
	}{
		"none":            {map[string]string{"README": "x"}, nil, ""},
		"everybody's":     {map[string]string{".github/PULL_REQUEST_TEMPLATE.md": "\nhub {{x}}\n\n", "docs/pull_request_template.md": "docs"}, nil, "hub {{x}}"},
		"at the top":      {map[string]string{"pull_request_template.md": "top"}, nil, "top"},
		"the forge's own": {map[string]string{".github/pull_request_template.md": "hub", ".gitlab/b.md": "lab"}, templating{".gitlab/a.md", ".gitlab/b.md"}, "lab"},
		"another's":       {map[string]string{".github/pull_request_template.md": "hub", ".gitlab/b.md": "lab"}, nil, "hub"},
		"a link":          {map[string]string{".github/pull_request_template.md": "-> /etc/passwd"}, nil, ""},
		"endless":         {map[string]string{".github/pull_request_template.md": strings.Repeat("x", 40<<10)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(dir, path)
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if to, link := strings.CutPrefix(text, "-> "); link {
					err = os.Symlink(to, path)
				} else if err == nil {
					err = os.WriteFile(path, []byte(text), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"init -q", "add -A", "-c user.name=a -c user.email=a commit -qm x"} {
				if out, err := exec.Command("git", append([]string{"-C", dir}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if err := os.RemoveAll(filepath.Join(dir, ".github")); err != nil { // the checked-out files do not count
				t.Fatal(err)
			}
			if got, err := publish.Template(t.Context(), git.New(dir), "HEAD", struct {
				tracker.Tracker
				templating
			}{templating: c.own}); got != c.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}
