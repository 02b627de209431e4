package worktree

import (
	"compress/zlib"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const claimLife = time.Hour

// withRemote gives the repository a bare remote called origin, and opens it with that.
func (f *fixture) withRemote() (bare string) {
	f.Helper()
	bare = filepath.Join(realDir(f), "origin.git")
	f.sh("", "git", "init", "-q", "--bare", "-b", "main", bare)
	f.git("remote", "add", "origin", bare)
	f.git("push", "-q", "origin", "main")
	f.open(Options{Remote: "origin"})
	return bare
}

// clone is another machine with the same remote.
func (f *fixture) clone(bare, host string) *fixture {
	f.Helper()
	c := &fixture{T: f.T, dir: filepath.Join(realDir(f), "clone"), state: filepath.Join(realDir(f), "state")}
	c.sh("", "git", "clone", "-q", bare, c.dir)
	c.open(Options{Remote: "origin"})
	c.repo.self.host = host
	return c
}

func TestClaim(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"local", "remote"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if where == "remote" {
				f.withRemote()
			}
			ctx := context.Background()
			c, err := f.repo.Claim(ctx, "k", Holder{Owner: "me", Run: "r1", Hash: "h"}, claimLife)
			if err != nil {
				t.Fatal(err)
			}
			if h := c.Holder(); h.Generation != 1 || h.PID == 0 || h.Started == "" || h.Host == "" || time.Until(h.Expires) > claimLife {
				t.Errorf("holder = %+v", h)
			}
			_, err = f.repo.Claim(ctx, "k", Holder{Owner: "me", Run: "r2"}, claimLife)
			taken, ok := errors.AsType[*TakenError](err)
			if !ok || !errors.Is(err, ErrTaken) || taken.Holder.Run != "r1" {
				t.Fatalf("second claim: %v", err)
			}
			if err := c.Renew(ctx); err != nil {
				t.Error(err)
			}
			if states, _, err := f.repo.Claims(ctx); err != nil || states["k"].Holder != c.Holder() || states["k"].Gone {
				t.Errorf("claims = %+v, %v; want %+v", states, err, c.Holder())
			}
			for range 2 {
				if err := c.Release(ctx); err != nil {
					t.Error(err)
				}
			}
			if err := c.Renew(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("renew after release: %v", err)
			}
			if states, _, err := f.repo.Claims(ctx); err != nil || len(states) != 0 {
				t.Errorf("claims = %+v, %v", states, err)
			}
			if refs := f.git("for-each-ref", "refs/ralph/"); refs != "" {
				t.Errorf("refs are left: %s", refs)
			}
		})
	}
}

func TestClaimTakeOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	other := f.clone(bare, "other-machine")
	ctx := context.Background()
	mine, err := f.repo.Claim(ctx, "k", Holder{Owner: "me", Run: "r1"}, claimLife)
	if err != nil {
		t.Fatal(err)
	}
	// On another machine the process's number means nothing.
	other.repo.alive = func(int, string) bool { return false }
	if _, err := other.repo.Claim(ctx, "k", Holder{Owner: "you", Run: "r2"}, claimLife); !errors.Is(err, ErrTaken) {
		t.Fatalf("claim of a live one: %v", err)
	}
	other.repo.now = func() time.Time { return time.Now().Add(claimLife + clockMargin/2) }
	if _, err := other.repo.Claim(ctx, "k", Holder{Owner: "you", Run: "r2"}, claimLife); !errors.Is(err, ErrTaken) {
		t.Fatalf("claim within the clock margin: %v", err)
	}
	other.repo.now = func() time.Time { return time.Now().Add(claimLife + 2*clockMargin) }
	if states, _, err := other.repo.Claims(ctx); err != nil || !states["k"].Gone {
		t.Errorf("claims = %+v, %v", states, err)
	}
	theirs, err := other.repo.Claim(ctx, "k", Holder{Owner: "you", Run: "r2"}, claimLife)
	if err != nil || theirs.Holder().Generation != 2 {
		t.Fatalf("take-over: %+v, %v", theirs, err)
	}
	if err := mine.Renew(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("renew of a lost claim: %v", err)
	}
	if err := mine.Release(ctx); err != nil {
		t.Errorf("release of a lost claim: %v", err)
	}
	if err := theirs.Renew(ctx); err != nil {
		t.Errorf("the release of a lost claim hurt its new holder: %v", err)
	}
	// A dead process of this very host is taken over at once.
	other.repo.self.pid++
	again, err := other.repo.Claim(ctx, "k", Holder{Owner: "you", Run: "r3"}, claimLife)
	if err != nil || again.Holder().Generation != 3 {
		t.Errorf("take-over from the dead: %v", err)
	}
}

func TestClaimRemoteAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	ctx := context.Background()
	c, err := f.repo.Claim(ctx, "k", Holder{Owner: "me", Run: "r1"}, claimLife)
	if err != nil {
		t.Fatal(err)
	}
	f.sh("", "mv", bare, bare+".away")
	if err := c.Renew(ctx); !errors.Is(err, ErrRemote) || errors.Is(err, ErrLost) {
		t.Errorf("renew: %v", err)
	}
	if _, err := f.repo.Claim(ctx, "other", Holder{Owner: "me", Run: "r2"}, claimLife); !errors.Is(err, ErrRemote) {
		t.Errorf("claim: %v", err)
	}
	f.sh("", "mv", bare+".away", bare)
	if err := c.Renew(ctx); err != nil {
		t.Errorf("renew when the remote is back: %v", err)
	}
	// A remote that refuses for reasons of its own does not make the claim lost.
	f.write(bare, "hooks/pre-receive", "#!/bin/sh\nexit 1\n")
	f.sh(bare, "chmod", "+x", "hooks/pre-receive")
	if err := c.Renew(ctx); !errors.Is(err, ErrRemote) || errors.Is(err, ErrLost) {
		t.Errorf("renew at a refusing remote: %v", err)
	}
}

func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	other := f.clone(bare, "other-machine")
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 6 {
		r := []*Repo{f.repo, other.repo}[i%2]
		group.Go(func() {
			_, err := r.Claim(context.Background(), "k", Holder{Owner: "o", Run: string(rune('a' + i))}, claimLife)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrTaken):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have won", won.Load())
	}
}

// memoryClaims is a claim store that can lose the answer to a swap.
type memoryClaims struct {
	at, message map[string]string
	read1       func(commit string) string // message of a commit
	lose        bool
}

var _ claimStore = (*memoryClaims)(nil)

var errAnswerLost = errors.New("the answer is lost")

func (m *memoryClaims) swap(_ context.Context, key, old, new string) error {
	if m.at[key] != old {
		return errSwap
	}
	m.at[key], m.message[key] = new, m.read1(new)
	if m.lose {
		return errAnswerLost
	}
	return nil
}

func (m *memoryClaims) read(_ context.Context, key string) (string, string, error) {
	return m.at[key], m.message[key], nil
}

func (m *memoryClaims) list(context.Context) (map[string]string, error) { return m.message, nil }

// TestClaimProperties lets three processes on two machines claim, renew, release, crash and wait in any order, with
// answers getting lost. There are never two that may believe to hold the claim, and its generation only grows.
func TestClaimProperties(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		store := &memoryClaims{at: map[string]string{}, message: map[string]string{}}
		store.read1 = func(commit string) string {
			if commit == "" {
				return ""
			}
			packed, err := os.Open(filepath.Join(f.repo.objects.dir, commit[:2], commit[2:]))
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
			return commitMessage(string(content))
		}
		dead := map[int]bool{}
		type actor struct {
			repo  *Repo
			claim *Claim
		}
		var actors []*actor
		for i, host := range []string{"one", "one", "two"} {
			r := *f.repo
			r.claims, r.self = store, self{host: host, pid: i + 1, started: "x"}
			r.now = func() time.Time { return now }
			r.alive = func(pid int, _ string) bool { return !dead[pid] }
			actors = append(actors, &actor{repo: &r})
		}
		pid, run, generation := len(actors), 0, 0
		held := "" // the commit at which generation was seen
		pick := func(t *rapid.T) *actor { return rapid.SampledFrom(actors).Draw(t, "actor") }
		t.Repeat(map[string]func(*rapid.T){
			"claim": func(t *rapid.T) {
				a := pick(t)
				if a.claim != nil {
					return
				}
				run++
				store.lose = rapid.Bool().Draw(t, "lose")
				c, err := a.repo.Claim(ctx, "k", Holder{Owner: "o", Run: string(rune(run))}, claimLife)
				store.lose = false
				switch {
				case err == nil:
					a.claim = c
				case !errors.Is(err, ErrTaken) && !errors.Is(err, errAnswerLost):
					t.Fatal(err)
				}
			},
			"renew": func(t *rapid.T) {
				a := pick(t)
				if a.claim == nil {
					return
				}
				store.lose = rapid.Bool().Draw(t, "lose")
				err := a.claim.Renew(ctx)
				store.lose = false
				if errors.Is(err, ErrLost) {
					a.claim = nil
				} else if err != nil && !errors.Is(err, errAnswerLost) {
					t.Fatal(err)
				}
			},
			"release": func(t *rapid.T) {
				if a := pick(t); a.claim != nil {
					if err := a.claim.Release(ctx); err != nil {
						t.Fatal(err)
					}
					a.claim = nil
				}
			},
			"crash": func(t *rapid.T) {
				a := pick(t)
				dead[a.repo.self.pid] = true
				pid++
				a.repo.self.pid, a.claim = pid, nil
			},
			"wait": func(*rapid.T) { now = now.Add(claimLife / 2) },
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
				if at := store.at["k"]; at != held {
					h, err := decodeClaim(store.message["k"])
					if at != "" && (err != nil || h.Generation < generation) {
						t.Fatalf("generation %d after %d (%v)", h.Generation, generation, err)
					}
					held, generation = at, h.Generation
				}
			},
		})
	})
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", ".", "..", "a/b", "a b", "a.lock", "a..b", ".a", "é", "-x\n", strings.Repeat("a", 201)} {
		if checkKey(key) == nil {
			t.Errorf("key %q is accepted", key)
		}
	}
	for _, branch := range []string{"", "-f", "HEAD", "a..b", "a b", "a/", "a@{b"} {
		if checkBranch(branch) == nil {
			t.Errorf("branch %q is accepted", branch)
		}
	}
}
