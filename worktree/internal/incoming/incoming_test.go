package incoming

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// site is a repository and its remote, which has more commits.
type site struct {
	*testing.T
	dir, bare string
	git.Runner
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: filepath.Join(t.TempDir(), `a "clone": 1`), bare: filepath.Join(t.TempDir(), "origin.git")}
	s.run(".", "init", "-q", "--bare", "-b", "main", s.bare)
	s.run(".", "init", "-q", "-b", "main", s.dir)
	s.run(s.dir, "commit", "-q", "--allow-empty", "-m", "first")
	s.run(s.dir, "remote", "add", "origin", s.bare)
	s.run(s.dir, "push", "-q", "origin", "main")
	common := filepath.Join(s.dir, ".git")
	s.Runner = git.New(s.dir).Pin(common, common, s.dir)
	return s
}

func (s *site) run(dir string, args ...string) string {
	s.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// more adds a commit with files of noise on the remote.
func (s *site) more(files, size int) (commit string) {
	s.Helper()
	other := s.TempDir()
	s.run(other, "clone", "-q", s.bare, ".")
	for i := range files {
		noise := make([]byte, size)
		_, _ = rand.Read(noise)
		if err := os.WriteFile(filepath.Join(other, fmt.Sprint(i)), noise, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.run(other, "add", ".")
	s.run(other, "commit", "-q", "-m", "more")
	s.run(other, "push", "-q", "origin", "main")
	return s.run(other, "rev-parse", "HEAD")
}

// left lists the files in the objects folder that git did not make.
func (s *site) left() (left []string) {
	s.Helper()
	for _, pattern := range []string{"tmp_*", "pack/tmp_*"} {
		found, err := filepath.Glob(filepath.Join(s.dir, ".git", "objects", pattern))
		if err != nil {
			s.Fatal(err)
		}
		left = append(left, found...)
	}
	return left
}

// A few objects are stored as loose objects, many or large ones as a pack. A partial clone records where the rest is.
func TestFetch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files, size, packs int
		partial            bool
	}{
		"few":         {1, 10, 0, false},
		"many":        {2 * unpackLimit, 10, 1, false},
		"large":       {1, 2 * smallFetch, 1, false},
		"few of some": {1, 10, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if c.partial {
				s.run(s.bare, "config", "uploadpack.allowFilter", "true")
				s.run(s.dir, "config", "core.repositoryFormatVersion", "1")
				s.run(s.dir, "config", "extensions.partialClone", "origin")
				s.run(s.dir, "config", "remote.origin.promisor", "true")
				s.run(s.dir, "config", "remote.origin.partialCloneFilter", "blob:none")
			}
			commit := s.more(c.files, c.size)
			for range 2 {
				if err := Fetch(t.Context(), s.Runner, "origin", 0, commit); err != nil {
					t.Fatal(err)
				}
			}
			s.run(s.dir, "update-ref", "refs/heads/more", commit)
			if got := s.run(s.dir, "fsck", "--no-dangling"); got != "" {
				t.Error(got)
			}
			packs := strings.Count(s.run(s.dir, "count-objects", "-v"), "packs: "+fmt.Sprint(c.packs))
			if left := s.left(); packs != 1 || len(left) > 0 {
				t.Errorf("%s; left: %q", s.run(s.dir, "count-objects", "-v"), left)
			}
			if c.partial { // the file is fetched on demand
				s.run(s.dir, "cat-file", "-p", commit+":0")
			}
		})
	}
}

// Whoever looks for leftovers locks a new folder for a moment. The folder is locked all the same.
func TestFolderIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if locked, err := filelock.Try(other); !locked {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if _, err := hold(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("held by another: %v", err)
	}
	_ = other.Close()
	f, err := hold(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if locked, err := filelock.Try(again); locked || err != nil {
		t.Errorf("not locked: %v", err)
	}
}

// A fetch that fills the disk is stopped while the remote still sends, and leaves nothing behind. A small one does not fill
// the disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.WithMinFree(1 << 60)
	if err := Fetch(t.Context(), g, "origin", 0, s.more(1, 10)); err != nil {
		t.Error(err)
	}
	commit := s.more(1, 4*smallFetch)
	s.hang(3 * smallFetch)
	err := Fetch(t.Context(), g, "origin", 0, commit)
	if short, is := errors.AsType[*disk.ShortError](err); !is || short.Place != filepath.Join(s.dir, ".git", "objects") {
		t.Error(err)
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A fetch that is too large is stopped, too.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	commit := s.more(1, 4*smallFetch)
	s.hang(3 * smallFetch)
	if err := Fetch(t.Context(), s.Runner, "origin", smallFetch, commit); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// hang makes the remote send that many bytes and then block.
func (s *site) hang(bytes int) {
	s.Helper()
	script := filepath.Join(s.TempDir(), "upload-pack")
	text := fmt.Sprintf("#!/bin/sh\ngit-upload-pack \"$@\" | { dd bs=1024 count=%d 2>/dev/null; exec sleep 1000; }\n", bytes>>10)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		s.Fatal(err)
	}
	s.run(s.dir, "config", "remote.origin.uploadpack", script)
}
