package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

// A lock file of a killed git on one of ralph's refs does not block the ref forever. A young one, and one on another ref,
// stays.
func TestStaleLocks(t *testing.T) {
	t.Parallel()
	const age = time.Minute
	for name, c := range map[string]struct {
		ref   string
		old   time.Duration
		stale bool
	}{
		"stale":               {"refs/ours/a", 2 * age, true},
		"young":               {"refs/ours/a", 0, false},
		"on somebody's ref":   {"refs/heads/main", 2 * age, false},
		"stale and in a path": {"refs/ours/b/c", 2 * age, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			commit := r.git("rev-parse", "HEAD")
			lock := filepath.Join(r.dir, ".git", filepath.FromSlash(c.ref)) + ".lock"
			if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(lock, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-c.old)
			if err := os.Chtimes(lock, then, then); err != nil {
				t.Fatal(err)
			}
			g := r.WithOwnedRefs(age, "refs/ours/", "refs/none/").With(HardenedEnv(Setting{"core.filesRefLockTimeout", "0"})...)
			if got, err := g.StaleLocks(); err != nil || slices.Contains(got, lock) != c.stale {
				t.Errorf("stale locks: %v, %v", got, err)
			}
			if err := g.MoveRefs(t.Context(), Edit{Ref: c.ref, New: commit, Any: true}); (err == nil) != c.stale {
				t.Errorf("move: %v", err)
			}
			if _, err := os.Lstat(lock); os.IsNotExist(err) != c.stale {
				t.Errorf("lock: %v", err)
			}
		})
	}
}
