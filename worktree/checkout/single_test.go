package checkout

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// TestSingle compares a repository's only checkout with git's list.
func TestSingle(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(top, ".git")
	g := git.New(top).Pin(common, common, top)
	for _, tt := range []struct {
		state  string
		single bool
		change [][]string
	}{
		{"unborn", true, [][]string{{"init", "--quiet", "--initial-branch=main"}}},
		{"a branch", true, [][]string{{"commit", "--quiet", "--allow-empty", "--message=first"}}},
		{"detached", true, [][]string{{"switch", "--quiet", "--detach"}}},
		{"a bisection", true, [][]string{{"switch", "--quiet", "main"}, {"bisect", "start"}}},
		{"a linked worktree", false, [][]string{{"worktree", "add", "--quiet", "--detach", filepath.Join(t.TempDir(), "linked")}}},
	} {
		for _, args := range tt.change {
			cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", top, "-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
		c, ok := single(t.Context(), g)
		if ok != tt.single {
			t.Errorf("%s: single is %v", tt.state, ok)
		}
		out, err := g.Output(t.Context(), "worktree", "list", "--porcelain", "-z")
		if err != nil {
			t.Fatal(err)
		}
		want := parse(out)
		want[0].GitDir, want[0].Begun = common, begun(common)
		if ok && !reflect.DeepEqual([]Checkout{c}, want) {
			t.Errorf("%s: got %+v, git lists %+v", tt.state, c, want)
		}
	}
}
