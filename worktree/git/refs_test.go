package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git/internal/reflock"
)

func TestMoveRefs(t *testing.T) {
	t.Parallel()
	for name, remembering := range map[string]bool{"a process for each": false, "one process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			if remembering {
				r.Runner = r.WithCache()
			}
			testMoveRefs(t, r)
		})
	}
}

func testMoveRefs(t *testing.T, r *repo) {
	ctx := t.Context()
	first := r.git("rev-parse", "HEAD")
	r.git("commit", "-q", "--allow-empty", "-m", "second")
	second := r.git("rev-parse", "HEAD")
	const a, b = "refs/x/a", "refs/x/b"
	steps := []struct {
		name  string
		edits []Edit
		moved bool
		want  map[string]string // refs afterwards
	}{
		{"create", []Edit{{Ref: a, New: first}}, false, map[string]string{a: first}},
		{"create again", []Edit{{Ref: a, New: second}}, true, map[string]string{a: first}},
		{"move", []Edit{{Ref: a, New: second, Old: first}}, false, map[string]string{a: second}},
		{"move from elsewhere", []Edit{{Ref: a, New: first, Old: first}}, true, map[string]string{a: second}},
		{"all or none", []Edit{{Ref: b, New: first}, {Ref: a, New: first, Old: first}}, true, map[string]string{a: second}},
		{"from anywhere", []Edit{{Ref: a, New: first, Any: true}, {Ref: b, New: second, Any: true}}, false, map[string]string{a: first, b: second}},
		{"delete from elsewhere", []Edit{{Ref: a, Old: second}}, true, map[string]string{a: first, b: second}},
		{"delete what is gone", []Edit{{Ref: "refs/x/c", Old: second}}, true, map[string]string{a: first, b: second}},
		{"delete", []Edit{{Ref: a, Old: first}, {Ref: b, Old: second}}, false, map[string]string{}},
		{"nothing", nil, false, map[string]string{}},
	}
	for _, s := range steps {
		if err := r.MoveRefs(ctx, s.edits...); errors.Is(err, ErrMoved) != s.moved || !s.moved && err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		got, err := r.Refs(ctx, "refs/x/")
		if err != nil || len(got) != len(s.want) || got[a] != s.want[a] || got[b] != s.want[b] {
			t.Fatalf("after %s: %v (%v), want %v", s.name, got, err, s.want)
		}
	}
}

// A lock file of a killed git on one of ralph's refs does not block the ref. One that another git may hold stays, and so does one on
// another ref.
func TestStaleLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref    string
		old    time.Duration
		during func(lock string) error // what happens while ralph waits
		held   bool                    // another ralph is moving refs
		lost   bool                    // the folder of the file that says so is gone
		waits  time.Duration
		freed  bool
		want   error
	}{
		"old":                 {ref: "refs/ours/a", old: 2 * reflock.Age, waits: reflock.Rest, freed: true},
		"without the folder":  {ref: "refs/ours/a", old: 2 * reflock.Age, lost: true, waits: reflock.Rest, freed: true},
		"old and in a path":   {ref: "refs/ours/b/c", old: 2 * reflock.Age, waits: reflock.Rest, freed: true},
		"young":               {ref: "refs/ours/a", waits: reflock.Age, freed: true},
		"from the future":     {ref: "refs/ours/a", old: -time.Hour, waits: reflock.Age, freed: true},
		"on somebody's ref":   {ref: "refs/heads/main", old: 2 * reflock.Age},
		"beside another move": {ref: "refs/ours/a", old: 2 * reflock.Age, held: true, waits: reflock.Age + reflock.Rest, want: ErrLocked},
		"of a living git": {ref: "refs/ours/a", old: 2 * reflock.Age, waits: reflock.Pause, during: func(lock string) error {
			return errors.Join(os.WriteFile(lock+".next", nil, 0o644), os.Rename(lock+".next", lock))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			commit := r.git("rev-parse", "HEAD")
			moving := filepath.Join(t.TempDir(), "moving")
			if c.lost {
				moving = filepath.Join(moving, "gone")
			}
			lock := filepath.Join(r.dir, ".git", filepath.FromSlash(c.ref)) + ".lock"
			if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-c.old)
			if err := os.Chtimes(lock, then, then); err != nil {
				t.Fatal(err)
			}
			waited := time.Duration(0)
			sleep := func(_ context.Context, d time.Duration) error {
				if waited += d; waited == d && c.during != nil {
					return c.during(lock)
				}
				return nil
			}
			g := r.WithOwnedRefs(moving, sleep, "refs/ours/", "refs/none/").With(HardenedEnv(Setting{"core.filesRefLockTimeout", "0"})...)
			if got, err := g.StaleLocks(); err != nil || slices.Contains(got, lock) != (c.old > 0 && c.ref != "refs/heads/main") {
				t.Errorf("stale locks: %v, %v", got, err)
			}
			if c.held {
				unlock, err := filelock.LockShared(t.Context(), moving)
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			if err := g.MoveRefs(t.Context(), Edit{Ref: c.ref, New: commit, Any: true}); (err == nil) != c.freed || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("move: %v", err)
			}
			if _, err := os.Lstat(lock); os.IsNotExist(err) != c.freed {
				t.Errorf("lock: %v", err)
			}
			if waited < c.waits || waited > c.waits+reflock.Pause {
				t.Errorf("waited %s, want %s", waited, c.waits)
			}
		})
	}
}

// Git deletes a ref under the lock of packed-refs. That of a killed git goes, with the new file that it has begun; a younger one may be
// of a living git.
func TestStaleLockOfPackedRefs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock, begun time.Duration // ages; 0: there is no new file
		freed       bool
	}{
		"old":                         {lock: 2 * reflock.PackedAge, freed: true},
		"old, with a new file":        {lock: 2 * reflock.PackedAge, begun: 2 * reflock.PackedAge, freed: true},
		"old, and it is being packed": {lock: 2 * reflock.PackedAge, begun: time.Second},
		"young":                       {lock: reflock.PackedAge / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			commit := r.git("rev-parse", "HEAD")
			r.git("update-ref", "refs/ours/a", commit)
			r.git("pack-refs", "--all")
			lock := filepath.Join(r.dir, ".git", "packed-refs.lock")
			for path, age := range map[string]time.Duration{lock: c.lock, filepath.Join(r.dir, ".git", "packed-refs.new"): c.begun} {
				if then := time.Now().Add(-age); age != 0 {
					if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, then, then)); err != nil {
						t.Fatal(err)
					}
				}
			}
			sleep := func(context.Context, time.Duration) error { return nil }
			g := r.WithOwnedRefs(filepath.Join(t.TempDir(), "moving"), sleep, "refs/ours/").With(HardenedEnv(Setting{"core.packedRefsTimeout", "0"})...)
			if got, err := g.StaleLocks(); err != nil || slices.Contains(got, lock) != c.freed {
				t.Errorf("stale locks: %v, %v", got, err)
			}
			if err := g.MoveRefs(t.Context(), Edit{Ref: "refs/ours/b", New: commit}); err != nil {
				t.Errorf("create: %v", err)
			}
			err := g.MoveRefs(t.Context(), Edit{Ref: "refs/ours/a", Old: commit})
			if _, there := os.Lstat(lock); (err == nil) != c.freed || os.IsNotExist(there) != c.freed {
				t.Errorf("%v, %v", err, there)
			}
			if err != nil && !strings.Contains(err.Error(), lock) {
				t.Errorf("the error does not name the lock: %v", err)
			}
		})
	}
}
