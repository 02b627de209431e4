package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An error about a broken ref, such as an empty file left by a full disk, names the ref, its repository and the command
// that removes it.
func TestBrokenRef(t *testing.T) {
	t.Parallel()
	for where, content := range map[string]string{"empty": "", "without object": strings.Repeat("1", 40) + "\n"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			bare := filepath.Join(realDir(t), "origin.git")
			f.sh("", "git", "clone", "-q", "--bare", f.dir, bare)
			f.git("remote", "add", "origin", bare)
			repo := f.open(Options{Remote: "origin"})
			breakRef := func(dir string) {
				if err := os.WriteFile(filepath.Join(dir, "refs/heads/bad"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fix := func(dir string, err error) {
				t.Helper()
				_, command, ok := strings.Cut(err.Error(), "there with: ")
				if !ok {
					t.Fatal("no command")
				}
				if out, err := f.try(dir, "sh", "-c", strings.Split(command, "\n")[0]); err != nil {
					t.Errorf("%s: %v: %s", command, err, out)
				}
			}
			breakRef(bare)
			_, err := repo.Claim(t.Context(), "k", Holder{Owner: "me", Run: "1"}, time.Minute)
			if !errors.Is(err, ErrRemote) || !strings.Contains(err.Error(), "in the repository of origin, which refuses every push, the ref refs/heads/bad is broken") || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			if content == "" {
				fix(bare, err)
			} else { // the remote can be told to remove it
				_, command, _ := strings.Cut(err.Error(), "from here with: ")
				command, _, _ = strings.Cut(command, ", ")
				f.sh(f.dir, "sh", "-c", command)
			}
			if _, err := repo.Claim(t.Context(), "k", Holder{Owner: "me", Run: "1"}, time.Minute); err != nil {
				t.Error(err)
			}

			other := filepath.Join(realDir(t), "other")
			f.sh("", "git", "clone", "-q", bare, other)
			f.commit(other, "new", "x", "new")
			f.sh(other, "git", "push", "-q", "origin", "HEAD:refs/heads/new")
			breakRef(filepath.Join(f.dir, ".git"))
			_, err = repo.RemoteTips(t.Context(), "new")
			if err == nil || errors.Is(err, ErrRemote) || !strings.Contains(err.Error(), "in this repository, the ref refs/heads/bad is broken") {
				t.Fatal(err)
			}
			fix(f.dir, err)
			if tips, err := repo.RemoteTips(t.Context(), "new"); err != nil || tips["new"] == "" {
				t.Errorf("%q, %v", tips, err)
			}
		})
	}
}
