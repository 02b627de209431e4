package worktree

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/note"
)

// Objects that others have pushed do not fill the disk, whichever ref has them.
func TestFetchLeavesRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare, other := filepath.Join(realDir(t), "origin.git"), realDir(t)
	f.sh("", "git", "init", "-q", "--bare", "-b", "main", bare)
	f.git("remote", "add", "origin", bare)
	f.git("push", "-q", "origin", "main")
	f.sh(other, "git", "clone", "-q", bare, ".")
	for _, ref := range []string{"refs/heads/large", note.Ref} {
		noise := make([]byte, 2<<20)
		_, _ = rand.Read(noise)
		if err := os.WriteFile(filepath.Join(other, "noise"), noise, 0o600); err != nil {
			t.Fatal(err)
		}
		f.sh(other, "git", "add", ".")
		f.sh(other, "git", "commit", "-q", "-m", "noise")
		f.sh(other, "git", "push", "-q", "origin", "HEAD:"+ref)
	}
	fetches := map[string]func(*Repo) error{
		"branch": func(r *Repo) error { _, err := r.RemoteTips(t.Context(), "large"); return err },
		"notes":  func(r *Repo) error { _, _, err := r.Notes().RemoteHead(t.Context()); return err },
	}
	for _, room := range []bool{false, true} {
		o := Options{Remote: "origin", MinFree: 1 << 60}
		if room {
			o.MinFree = 0
		}
		r := f.open(o)
		for what, fetch := range fetches {
			err := fetch(r)
			if _, short := errors.AsType[*disk.ShortError](err); short == room || room && err != nil {
				t.Errorf("with room: %v: %s: %v", room, what, err)
			}
		}
	}
}
