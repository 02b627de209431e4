package publish_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/worktree/git"
)

// The template is the one in the commit, with that of the tracker's forge first; links and very long files do not count.
func TestTemplate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   map[string]string
		tracker string
		want    string
	}{
		"none":            {map[string]string{"README": "x"}, "github", ""},
		"GitHub's":        {map[string]string{".github/PULL_REQUEST_TEMPLATE.md": "\nhub {{x}}\n\n", "docs/pull_request_template.md": "docs"}, "github", "hub {{x}}"},
		"at the top":      {map[string]string{"pull_request_template.md": "top"}, "github", "top"},
		"GitLab's first":  {map[string]string{".github/pull_request_template.md": "hub", ".gitlab/merge_request_templates/Default.md": "lab"}, "gitlab", "lab"},
		"another's first": {map[string]string{".github/pull_request_template.md": "hub", ".gitlab/merge_request_templates/Default.md": "lab"}, "github", "hub"},
		"a link":          {map[string]string{".github/pull_request_template.md": "-> /etc/passwd"}, "github", ""},
		"endless":         {map[string]string{".github/pull_request_template.md": strings.Repeat("x", 40<<10)}, "github", ""},
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
			if got, err := publish.Template(t.Context(), git.New(dir), "HEAD", c.tracker); got != c.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}
