package sandboxes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// A saved .git file is restored whatever a command has put in its place, and no link is followed.
func TestRestoreGitFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(git, elsewhere string) error{
		"unchanged": nil,
		"other":     func(git, _ string) error { return os.WriteFile(git, []byte("gitdir: /evil\n"), 0o644) },
		"removed":   func(git, _ string) error { return os.Remove(git) },
		"folder": func(git, _ string) error {
			_ = os.Remove(git)
			return os.MkdirAll(filepath.Join(git, "hooks"), 0o755)
		},
		"link": func(git, elsewhere string) error {
			_ = os.Remove(git)
			return os.Symlink(elsewhere, git)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worktree, state := t.TempDir(), t.TempDir()
			git, elsewhere := filepath.Join(worktree, ".git"), filepath.Join(t.TempDir(), "file")
			for path, text := range map[string]string{git: "gitdir: /mine\n", elsewhere: "theirs"} {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := sandboxes.SaveGitFile(state, worktree); err != nil {
				t.Fatal(err)
			}
			if change != nil {
				if err := change(git, elsewhere); err != nil {
					t.Fatal(err)
				}
			}
			if changed, err := sandboxes.RestoreGitFile(state); err != nil || changed != (change != nil) {
				t.Errorf("changed %t, %v", changed, err)
			}
			if info, err := os.Lstat(git); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%v, %v", info, err)
			}
			for path, want := range map[string]string{git: "gitdir: /mine\n", elsewhere: "theirs"} {
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s is %q, %v", path, got, err)
				}
			}
		})
	}
	if changed, err := sandboxes.RestoreGitFile(t.TempDir()); changed || err != nil {
		t.Errorf("nothing saved: %t, %v", changed, err)
	}
}
