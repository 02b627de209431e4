package git

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Since 2.48 git links worktrees by relative paths if the user has chosen that.
func TestRelativeLinks(t *testing.T) {
	t.Parallel()
	f := newRepo(t)
	side, entry := filepath.Join(filepath.Dir(f.dir), "side"), filepath.Join(f.dir, ".git", "worktrees", "side")
	f.git("worktree", "add", "-q", side)
	check := func() {
		t.Helper()
		if tops := f.UserCheckouts(); !slices.Equal(tops, []string{f.dir, side}) {
			t.Errorf("checkouts: %q", tops)
		}
		if dir, err := LinkedGitDir(side); dir != entry || err != nil {
			t.Errorf("git directory: %q (%v)", dir, err)
		}
	}
	check()
	for path, target := range map[string]string{filepath.Join(entry, "gitdir"): side + "/.git", filepath.Join(side, ".git"): entry} {
		relative, err := filepath.Rel(filepath.Dir(path), target)
		if err == nil && path == filepath.Join(side, ".git") {
			relative = "gitdir: " + relative
		}
		if err = os.WriteFile(path, []byte(relative+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check()
}
