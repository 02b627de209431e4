package claim

import (
	"compress/zlib"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ralph-pool/ralph/worktree/git"
)

// memoryRefs are claim refs that can lose the answer to a swap.
type memoryRefs struct {
	at      map[string]string
	message func(commit string) string
	lose    bool
	cut     func() // called when a swap has arrived; may be nil
}

var _ refs = (*memoryRefs)(nil)

var errAnswerLost = errors.New("the answer is lost")

func (m *memoryRefs) swap(ctx context.Context, key, old, new string, _ ...git.Edit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.at[key] != old {
		return errRefChanged
	}
	m.at[key] = new
	if m.cut != nil {
		m.cut()
		m.cut = nil
		return context.Cause(ctx)
	}
	if m.lose {
		return errAnswerLost
	}
	return nil
}

func (*memoryRefs) push(context.Context, git.Edit) error { return nil }

func (m *memoryRefs) read(_ context.Context, key string) (string, string, error) {
	return m.at[key], m.message(m.at[key]), nil
}

func (*memoryRefs) lastMoved(string) time.Time { return time.Time{} }

func (m *memoryRefs) list(context.Context) (map[string]string, error) {
	all := map[string]string{}
	for key, commit := range m.at {
		if commit != "" {
			all[key] = m.message(commit)
		}
	}
	return all, nil
}

// messageIn reads a claim commit from the objects folder.
func messageIn(t interface{ Fatal(args ...any) }, objects git.Store, commit string) string {
	if commit == "" {
		return ""
	}
	packed, err := os.Open(filepath.Join(objects.Dir, commit[:2], commit[2:]))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	object, err := zlib.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(object)
	if err != nil {
		t.Fatal(err)
	}
	return git.Body(string(content))
}

// loseAnswers makes the store use refs in memory. losing runs a step whose answer is lost.
func loseAnswers(t *testing.T, s *Store) (losing func(step func() error)) {
	t.Helper()
	refs := &memoryRefs{at: map[string]string{}}
	refs.message = func(commit string) string { return messageIn(t, s.objects, commit) }
	s.refs = refs
	return func(step func() error) {
		t.Helper()
		refs.lose = true
		defer func() { refs.lose = false }()
		if err := step(); !errors.Is(err, errAnswerLost) {
			t.Fatal(err)
		}
	}
}

// A claim stays held after the answer to any of its swaps was lost.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	ctx := t.Context()
	losing := loseAnswers(t, s.store)
	losing(func() error {
		_, err := s.store.Claim(ctx, "k", Holder{Owner: "run-1", Run: "run-1"}, ttl)
		return err
	})
	c := claimed(t, s.store, "run-1")
	for range 3 {
		losing(func() error { return c.Renew(ctx) })
	}
	if err := c.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	losing(func() error { return c.SetRecord(ctx, Record{Run: "run-1", Attempts: 3}) })
	if err := c.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.state(s.store); got.Record.Attempts != 3 || !got.Gone {
		t.Errorf("%+v", got)
	}
}

// A claim whose taking is interrupted is given back, to the run of this machine that had it before, if any.
func TestClaimCutShort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, host, want string }{
		"free": {}, "of a dead run": {before: "run-0", want: "run-0"}, "of an expired run of another machine": {before: "run-0", host: "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, false)
			refs := &memoryRefs{at: map[string]string{}, message: func(commit string) string { return messageIn(t, s.store.objects, commit) }}
			s.store.refs = refs
			next := s.store.crashed()
			if test.host != "" {
				s.store.self.Host = test.host
				next = next.later(2 * ttl)
			}
			if test.before != "" {
				claimed(t, s.store, test.before)
			}
			ctx, cut := context.WithCancelCause(t.Context())
			refs.cut = func() { cut(nil) }
			if _, err := next.Claim(ctx, "k", Holder{Owner: "x", Run: "run-1"}, ttl); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if got := s.state(next).Holder; got.Run != test.want || got.PID != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Giving up a claim can be repeated after the answer was lost, and keeps the record that was to be left.
func TestLostAnswersAtTheEnd(t *testing.T) {
	t.Parallel()
	record := done("run-1")
	tests := map[string]struct {
		first, then func(ctx context.Context, c *Claim) error
		finished    bool
	}{
		"finish twice": {
			func(ctx context.Context, c *Claim) error { return c.Finish(ctx, record) },
			func(ctx context.Context, c *Claim) error { return c.Finish(ctx, record) }, true,
		},
		"finish, release": {
			func(ctx context.Context, c *Claim) error { return c.Finish(ctx, record) },
			func(ctx context.Context, c *Claim) error { return c.Release(ctx) }, true,
		},
		"leave, finish": {
			func(ctx context.Context, c *Claim) error { return c.Reserve(ctx, "run-1", ttl) },
			func(ctx context.Context, c *Claim) error { return c.Finish(ctx, record) }, true,
		},
		"leave, release": {
			func(ctx context.Context, c *Claim) error { return c.Reserve(ctx, "run-1", ttl) },
			func(ctx context.Context, c *Claim) error { return c.Release(ctx) }, false,
		},
		"release twice": {
			func(ctx context.Context, c *Claim) error { return c.Release(ctx) },
			func(ctx context.Context, c *Claim) error { return c.Release(ctx) }, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, false)
			losing := loseAnswers(t, s.store)
			c := claimed(t, s.store, "run-1")
			for range 2 {
				losing(func() error { return test.first(t.Context(), c) })
				if name == "release twice" { // the ref is gone
					break
				}
			}
			if err := test.then(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			states, err := s.store.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := states["k"]; (got.Finished != nil) != test.finished || test.finished && !same(*got.Finished, record) {
				t.Errorf("%+v", got)
			}
			if left := states["k"].Holder; left != (Holder{}) {
				t.Errorf("held by %+v", left)
			}
			if again := claimed(t, s.store, "run-2"); !test.finished && !same(again.Record(), Record{}) {
				t.Errorf("%+v", again.Record())
			}
		})
	}
}

// actor is one process.
type actor struct {
	store *Store
	claim *Claim
}

// TestClaimProperties lets three processes on two machines claim, renew, record, leave, finish, release, crash and wait in
// any order, while answers get lost. Two never believe that they hold the claim, the generation only grows, and no recorded
// attempt is forgotten.
func TestClaimProperties(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		refs := &memoryRefs{at: map[string]string{}}
		refs.message = func(commit string) string { return messageIn(t, s.store.objects, commit) }
		dead := map[int]bool{}
		var actors []*actor
		for i, host := range []string{"one", "one", "two"} {
			store := *s.store
			store.refs, store.self = refs, Process{Host: host, PID: i + 1, Started: "x"}
			store.now = func() time.Time { return now }
			store.uptime = func() time.Duration { return time.Duration(now.UnixNano()) }
			store.alive = func(pid int, _ string) bool { return !dead[pid] }
			actors = append(actors, &actor{store: &store})
		}
		pid, run, generation := len(actors), 0, 0
		recorded, possible := 0, 0 // the certain and the maximum number of recorded attempts
		held := ""                 // commit at which generation was seen
		pick := func(t *rapid.T) *actor { return rapid.SampledFrom(actors).Draw(t, "actor") }
		// do runs one step of a holder, whose answer may get lost.
		do := func(t *rapid.T, a *actor, step func() error) error {
			refs.lose = rapid.Bool().Draw(t, "lose")
			err := step()
			refs.lose = false
			if errors.Is(err, ErrLost) {
				a.claim = nil
			} else if err != nil && !errors.Is(err, errAnswerLost) {
				t.Fatal(err)
			}
			return err
		}
		give := func(step func(*Claim) error) func(*rapid.T) {
			return func(t *rapid.T) {
				if a := pick(t); a.claim != nil {
					if err := step(a.claim); err != nil && !errors.Is(err, ErrLost) {
						t.Fatal(err)
					}
					a.claim = nil
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				a := pick(t)
				if a.claim != nil {
					return
				}
				run++
				refs.lose = rapid.Bool().Draw(t, "lose")
				c, err := a.store.Claim(ctx, "k", Holder{Owner: "o", Run: string(rune(run))}, ttl)
				refs.lose = false
				switch {
				case err == nil:
					a.claim = c
				case !errors.Is(err, ErrTaken) && !errors.Is(err, errAnswerLost):
					t.Fatal(err)
				}
			},
			"renew": func(t *rapid.T) {
				if a := pick(t); a.claim != nil {
					_ = do(t, a, func() error { return a.claim.Renew(ctx) })
				}
			},
			"record": func(t *rapid.T) {
				a := pick(t)
				if a.claim == nil {
					return
				}
				r := a.claim.Record()
				r.Attempts++
				switch err := do(t, a, func() error { return a.claim.SetRecord(ctx, r) }); {
				case err == nil:
					recorded, possible = r.Attempts, max(possible, r.Attempts)
				case errors.Is(err, errAnswerLost):
					possible = max(possible, r.Attempts)
				}
			},
			"release": give(func(c *Claim) error { return c.Release(ctx) }),
			"finish":  give(func(c *Claim) error { return c.Finish(ctx, c.Record()) }),
			"leave":   give(func(c *Claim) error { return c.Reserve(ctx, "later", ttl) }),
			"crash": func(t *rapid.T) {
				a := pick(t)
				dead[a.store.self.PID] = true
				pid++
				a.store.self.PID, a.claim = pid, nil
			},
			"wait": func(*rapid.T) { now = now.Add(ttl / 2) },
			"": func(t *rapid.T) {
				holders := 0
				for _, a := range actors {
					if a.claim != nil && !now.After(a.claim.Holder().Expires) {
						holders++
					}
				}
				if holders > 1 {
					t.Fatalf("%d hold the claim", holders)
				}
				at := refs.at["k"]
				if at == held {
					return
				}
				d := document{}
				if at != "" {
					var err error
					if d, err = decode(refs.message(at)); err != nil || d.Generation < generation {
						t.Fatalf("generation %d after %d (%v)", d.Generation, generation, err)
					}
				}
				if got := d.Record.Attempts; got < recorded || got > possible {
					t.Fatalf("%d attempts are recorded, want %d to %d", got, recorded, possible)
				}
				held, generation = at, d.Generation
			},
		})
	})
}
