package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
)

// leave leaves the lock of a ralph that was killed.
func (s *site) leave() (lock string) {
	s.Helper()
	lock = filepath.Join(s.common, "index.lock")
	text := fmt.Sprintf(holdText, s.base.Ref, s.base.Commit, s.tip)
	if err := os.WriteFile(lock, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	return lock
}

// Ralph was killed while it moved the checkout: its lock does not keep the next ralph from working, and its changes are undone,
// even if the next merge is another one. What the user has changed stays.
func TestKilledInTheCheckout(t *testing.T) {
	t.Parallel()
	t.Run("before the index", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.write("a", "ne")      // half written
		s.write("d", "")        // begun
		s.write("new/e", "new") // written
		s.run(s.dir, "rm", "c", "dir/b")
		s.write("mine", "mine")
		s.leave()
		other := s.git("commit-tree", "-p", s.base.Commit, "-m", "other", s.base.Commit+"^{tree}")
		if commit, err := s.repo.MergeInto(t.Context(), s.base, other, "m"); err != nil || commit != other {
			t.Fatalf("%s, %v", commit, err)
		}
		s.check(other, " M mine")
	})
	t.Run("before the branch", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.git("read-tree", "-m", "-u", s.base.Commit, s.tip)
		s.leave()
		if err := s.repo.Check(t.Context(), s.base, s.tip); err != nil {
			t.Error(err)
		}
		s.check(s.base.Commit, "")
	})
	t.Run("after the branch", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.git("read-tree", "-m", "-u", s.base.Commit, s.tip)
		s.git("update-ref", s.base.Ref, s.tip)
		s.leave()
		s.base.Commit = s.tip
		if err := s.repo.Check(t.Context(), s.base, s.tip); err != nil {
			t.Error(err)
		}
		s.check(s.tip, "")
	})
	t.Run("not killed", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		f, err := os.Open(s.leave())
		if err == nil {
			defer f.Close()
			_, err = filelock.Try(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.merge(); err == nil || !strings.Contains(err.Error(), f.Name()) {
			t.Errorf("the lock of a living ralph was taken: %v", err)
		}
	})
}

// Ralph was killed while it moved the checkout, and the user has made another branch of it since. The next ralph undoes or completes
// what was begun, in whatever way it meets the lock, and a lock that it does not know stays.
func TestKilledInTheCheckoutOfAnotherBranch(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *site){
		"repair": func(s *site) {
			left, err := s.repo.Leftovers(s.Context())
			if err != nil || len(left) != 1 || !left[0].Safe || !Owns(left[0].Where) {
				s.Fatalf("%+v, %v", left, err)
			}
			for range 2 { // the second time another ralph has done it
				if _, err := left[0].Remove(s.Context()); err != nil {
					s.Error(err)
				}
			}
		},
		"merge": func(s *site) {
			s.git("branch", "-q", "-f", "other", s.base.Commit)
			other := s.base
			other.Ref, other.Name = "refs/heads/other", "other"
			if commit, err := s.repo.MergeInto(s.Context(), other, s.tip, "m"); err != nil || commit != s.tip {
				s.Errorf("%s, %v", commit, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, moved := range []bool{false, true} {
				s := newSite(t)
				s.git("read-tree", "-m", "-u", s.base.Commit, s.tip)
				main := s.base.Commit
				if moved {
					main = s.tip
					s.git("update-ref", s.base.Ref, main)
				}
				s.leave()
				s.git("switch", "-q", "-c", "feature")
				s.write("mine", "mine")
				end(s)
				s.check(main, " M mine")
				s.git("add", "mine")
				if err := os.WriteFile(filepath.Join(s.common, "index.lock"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				if left, err := s.repo.Leftovers(t.Context()); err != nil || len(left) > 0 || Owns(filepath.Join(s.common, "index.lock")) {
					t.Errorf("%+v, %v", left, err)
				}
			}
		})
	}
}

// A killed ralph's merge that cannot be ended keeps its lock, which alone says what was begun. A later repair ends it.
func TestKilledMergeCannotBeEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.git("read-tree", "-m", "-u", s.base.Commit, s.tip)
	lock := s.leave()
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(s.common, "index.ralph") // where the copy of the index belongs
	if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	repair := func() error {
		left, err := s.repo.Leftovers(t.Context())
		if err != nil || len(left) != 1 {
			t.Fatalf("%+v, %v", left, err)
		}
		_, err = left[0].Remove(t.Context())
		return err
	}
	if err := repair(); err == nil || !strings.Contains(err.Error(), s.dir) {
		t.Errorf("%v", err)
	}
	if now, err := os.ReadFile(lock); string(now) != string(text) {
		t.Fatalf("the lock says %q, %v", now, err)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := repair(); err != nil {
		t.Error(err)
	}
	s.check(s.base.Commit, "")
}

// The user removes ralph's lock, and begins a git of his own. Its lock stays.
func TestLockOfAnotherInsteadOfOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := move{s.base.Ref, s.base.Commit, s.tip}
	place := checkout.Checkout{Dir: s.dir, GitDir: s.common}
	f, err := s.repo.filesOf(t.Context(), place, m, s.tip)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.repo.hold(t.Context(), f, place, m)
	if err != nil {
		t.Fatal(err)
	}
	lock := h.lock.Name()
	if err := errors.Join(os.Remove(lock), os.WriteFile(lock, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if h.release(); !exists(lock) {
		t.Error("the lock of another git is gone")
	}
}

// A git that switches to main has read the old commit, and ends only after ralph has moved main. Ralph waits for its lock.
func TestWaitsForTheUsersSwitch(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{"mine", "a"} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.git("switch", "-q", "-c", "feature")
			s.write(edit, "mine")
			lock := filepath.Join(s.common, "index.lock")
			waits := 0
			s.afterLook = func() {
				if err := os.WriteFile(lock, nil, 0o644); err != nil {
					t.Error(err)
				}
			}
			s.repo.Sleep = func(context.Context, time.Duration) error {
				if waits++; waits == 3 {
					s.git("symbolic-ref", "HEAD", s.base.Ref)
					return os.Remove(lock)
				}
				return nil
			}
			commit, err := s.merge()
			if commit != s.tip {
				t.Fatalf("%q, %v", commit, err)
			}
			if edit == "mine" && err == nil {
				s.check(s.tip, " M mine")
				return
			}
			if edit == "mine" || !errors.Is(err, ErrBehind) {
				t.Fatal(err)
			}
			_, command, _ := strings.Cut(err.Error(), ": git ")
			s.run(s.dir, "sh", "-c", "git "+command)
			if got := s.git("diff", "--name-only", "HEAD"); got != "a" || s.git("symbolic-ref", "HEAD") != s.base.Ref {
				t.Errorf("after the command, changed is %q", got)
			}
		})
	}
}

// A git that switches to main has read the old commit, and the user commits before ralph sees the switch. The commit undoes the
// merge, and ralph says so, unless it has only files of its own.
func TestUserCommitsBeforeRalphFollows(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]bool{"the old files": true, "the merged files": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.git("switch", "-q", "-c", "feature")
			var top string
			s.repo.Sleep = func(context.Context, time.Duration) error {
				if top != "" {
					return nil
				}
				s.git("symbolic-ref", "HEAD", s.base.Ref)
				if !behind {
					s.git("reset", "-q", "--hard")
				}
				s.write("own", "mine")
				top = s.commit("mine")
				return nil
			}
			commit, err := s.merge()
			if commit != s.tip || errors.Is(err, ErrBehind) != behind || !behind && err != nil {
				t.Fatalf("%q, %v", commit, err)
			}
			if behind && !strings.Contains(err.Error(), git.Short(top)+" on top of it undoes the merge in 5 of its 5 files, such as a;") {
				t.Error(err)
			}
		})
	}
}

// While ralph holds the lock of the index, git still makes a new branch at the same commit, and a script can move a branch.
// Ralph then puts the files back.
func TestBranchChangesUnderTheLock(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for act, want := range map[string]error{"switch -q -c feature": nil, "update-ref refs/heads/main HEAD~1": git.ErrMoved} {
		t.Run(act, func(t *testing.T) {
			s := newSite(t)
			bin := t.TempDir()
			once := filepath.Join(bin, "once")
			script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = update-ref ] && mkdir %s 2>/dev/null && env -i HOME=/ %s -C %s %s\nexec %s \"$@\"\n",
				git.Quote(once), git.Quote(program), git.Quote(s.dir), act, git.Quote(program))
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			commit, err := s.merge()
			if !exists(once) || !errors.Is(err, want) {
				t.Fatalf("%q, %v; want %v", commit, err, want)
			}
			main, status := s.tip, ""
			if want != nil {
				main, status = s.git("rev-parse", s.base.Commit+"~1"), "A  c\nA  mine"
			}
			s.check(main, status)
		})
	}
}

// The disk is full in the middle of a move. That is no change of the user's, and the files are as before.
func TestDiskFull(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.write("mine", "mine")
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1 $4 $5\" = 'read-tree %s %s' ] && cd %s && printf new >d && rm -f c &&\n"+
		"echo 'fatal: cannot create: No space left on device' >&2 && exit 128\nexec %s \"$@\"\n",
		s.base.Commit, s.tip, git.Quote(s.dir), git.Quote(program))
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	commit, err := s.merge()
	if err == nil || errors.Is(err, ErrDirty) || !strings.Contains(err.Error(), "No space") {
		t.Errorf("%q, %v", commit, err)
	}
	s.check(s.base.Commit, " M mine")
}
