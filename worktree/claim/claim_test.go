package claim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

func TestClaim(t *testing.T) {
	everywhere(t, func(s *site) {
		ctx := s.Context()
		if _, err := s.store.Claim(ctx, "k", Holder{Run: "r1"}, ttl); err == nil || s.git("for-each-ref", "refs/ralph/") != "" {
			s.Errorf("a claim without an owner, which nobody could read, is taken: %v", err)
		}
		for _, never := range []time.Duration{0, -1} {
			if _, err := s.store.Claim(ctx, "k", Holder{Owner: "me", Run: "r1"}, never); err == nil || s.git("for-each-ref", "refs/ralph/") != "" {
				s.Errorf("a claim that is over at once is taken: %v", err)
			}
		}
		c, err := s.store.Claim(ctx, "k", Holder{Owner: "me", Run: "r1", Hash: "h"}, ttl)
		if err != nil {
			s.Fatal(err)
		}
		if h := c.Holder(); h.Generation != 1 || h.PID == 0 || h.Started == "" || h.Host == "" || time.Until(h.Expires) > ttl {
			s.Errorf("holder = %+v", h)
		}
		_, err = s.store.Claim(ctx, "k", Holder{Owner: "me", Run: "r2"}, ttl)
		taken, ok := errors.AsType[*TakenError](err)
		if !ok || !errors.Is(err, ErrTaken) || taken.Holder.Run != "r1" {
			s.Fatalf("second claim: %v", err)
		}
		if err := c.Renew(ctx); err != nil {
			s.Error(err)
		}
		if got := s.state(s.store); got.Holder != c.Holder() || got.Gone {
			s.Errorf("state = %+v; want %+v", got, c.Holder())
		}
		for range 2 {
			if err := c.Release(ctx); err != nil {
				s.Error(err)
			}
		}
		if err := c.Renew(ctx); !errors.Is(err, ErrLost) {
			s.Errorf("renew after release: %v", err)
		}
		if states, err := s.store.List(ctx); err != nil || len(states) != 0 {
			s.Errorf("claims = %+v, %v", states, err)
		}
		if refs := s.git("for-each-ref", "refs/ralph/"); refs != "" {
			s.Errorf("refs are left: %s", refs)
		}
	})
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	other := s.clone("other-machine")
	ctx := t.Context()
	mine := claimed(t, s.store, "r1")
	// On another machine the PID means nothing.
	yours := Holder{Owner: "you", Run: "r2"}
	for name, store := range map[string]*Store{
		"a live one": other.store.crashed(), "within the clock margin": other.store.later(ttl + clockMargin/2),
	} {
		if _, err := store.Claim(ctx, "k", yours, ttl); !errors.Is(err, ErrTaken) {
			t.Fatalf("claim of %s: %v", name, err)
		}
	}
	late := other.store.later(ttl + 2*clockMargin)
	late.alive = func(int, string) bool { return false }
	if !other.state(late).Gone {
		t.Error("an expired holder is not gone")
	}
	theirs, err := late.Claim(ctx, "k", yours, ttl)
	if err != nil || theirs.Holder().Generation != 2 || theirs.TakenOverFrom() != "" {
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
	// The claim of a dead process on this host is taken over at once.
	late.self.PID++
	again, err := late.Claim(ctx, "k", Holder{Owner: "you", Run: "r3"}, ttl)
	if err != nil || again.Holder().Generation != 3 || again.TakenOverFrom() != "r2" {
		t.Errorf("take-over from the dead: %v", err)
	}
}

// A changed clock or a sleep of the machine takes no claim from a live ralph of this host. A hanging one loses its claim.
func TestSleepTakesNoClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	claimed(t, s.store, "r1")
	awake := s.store.later(2 * ttl)
	awake.self.PID++
	awake.alive = func(int, string) bool { return true }
	hung := *awake
	awake.uptime = uptime
	next := Holder{Owner: "you", Run: "r2"}
	if _, err := awake.Claim(t.Context(), "k", next, ttl); !errors.Is(err, ErrTaken) {
		t.Errorf("after a sleep: %v", err)
	}
	if _, err := hung.Claim(t.Context(), "k", next, ttl); err != nil {
		t.Errorf("from one that hangs: %v", err)
	}
}

// A ralph of another version on this host may not record the host's own clock. It does not count as dead because of that.
func TestClaimWithoutHostClockGoesByTheUsualOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	mute := *s.store
	mute.uptime = func() time.Duration { return -ttl }
	claimed(t, &mute, "r1")
	other := *s.store
	other.self.PID++
	other.alive = func(int, string) bool { return true }
	next := Holder{Owner: "you", Run: "r2"}
	if _, err := other.Claim(t.Context(), "k", next, ttl); !errors.Is(err, ErrTaken) {
		t.Errorf("while it is valid: %v", err)
	}
	other.now = func() time.Time { return time.Now().Add(ttl + 2*clockMargin) }
	if _, err := other.Claim(t.Context(), "k", next, ttl); err != nil {
		t.Errorf("once it has expired: %v", err)
	}
}

func TestRemoteUnavailable(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	ctx := t.Context()
	c := claimed(t, s.store, "r1")
	s.sh("mv", s.bare(), s.bare()+".away")
	if err := c.Renew(ctx); !errors.Is(err, git.ErrRemote) || errors.Is(err, ErrLost) {
		t.Errorf("renew: %v", err)
	}
	if _, err := s.store.Claim(ctx, "other", Holder{Owner: "me", Run: "r2"}, ttl); !errors.Is(err, git.ErrRemote) {
		t.Errorf("claim: %v", err)
	}
	s.sh("mv", s.bare()+".away", s.bare())
	if err := c.Renew(ctx); err != nil {
		t.Errorf("renew when the remote is back: %v", err)
	}
	// A remote that refuses for its own reasons does not make the claim lost.
	s.script(filepath.Join(s.bare(), "hooks", "pre-receive"), "exit 1")
	if err := c.Renew(ctx); !errors.Is(err, git.ErrRemote) || errors.Is(err, ErrLost) {
		t.Errorf("renew at a refusing remote: %v", err)
	}
}

// A claim can be taken that another ralph releases between our push and our look at the reason of the refusal.
func TestReleasedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	claimed(t, s.clone("other").store, "run-1")
	// Reading from the remote releases it; pushing does not.
	reading := filepath.Join(filepath.Dir(s.dir), "upload-pack")
	s.script(reading, "git --git-dir='"+s.bare()+"' update-ref -d "+prefix+"k\nexec git-upload-pack \"$@\"")
	s.git("config", "remote.origin.uploadpack", reading)
	if h := claimed(t, s.store, "run-2").Holder(); h.Run != "run-2" || h.Generation != 1 {
		t.Errorf("%+v", h)
	}
}

func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	other := s.clone("other-machine")
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 6 {
		store := []*Store{s.store, other.store}[i%2]
		group.Go(func() {
			_, err := store.Claim(t.Context(), "k", Holder{Owner: "o", Run: string(rune('a' + i))}, ttl)
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

// A claim that was left can only be taken by the same run, in whatever process, until its TTL is over.
func TestLeftClaim(t *testing.T) {
	everywhere(t, func(s *site) {
		ctx := s.Context()
		c := claimed(s, s.store, "run-1")
		if err := c.Reserve(ctx, "run-0", ttl); err != nil {
			s.Fatal(err)
		}
		if err := c.Release(ctx); err != nil {
			s.Fatal(err)
		}
		if _, err := s.store.crashed().Claim(ctx, "k", Holder{Owner: "x", Run: "run-1"}, ttl); !errors.Is(err, ErrTaken) {
			s.Fatalf("another run takes it: %v", err)
		}
		again := claimed(s, s.store, "run-0")
		if _, err := s.store.Claim(ctx, "k", Holder{Owner: "x", Run: "run-0"}, ttl); !errors.Is(err, ErrTaken) {
			s.Fatalf("a second one takes it up too: %v", err)
		}
		if err := again.Reserve(ctx, "run-0", ttl); err != nil {
			s.Fatal(err)
		}
		if !s.state(s.store.later(ttl + 2*clockMargin)).Gone {
			s.Fatal("it is held for ever")
		}
	})
}

// A run that cannot tell the remote that it waits nevertheless keeps away the other clones of this host, until it is
// continued or its time is over. Other machines do not know of it.
func TestLeaveUntold(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.store.waitDir = filepath.Join(t.TempDir(), "left")
	clone := s.clone("clone").store
	clone.self, clone.waitDir, clone.alive = s.store.self, s.store.waitDir, func(int, string) bool { return false }
	ctx := t.Context()
	hook := filepath.Join(s.bare(), "hooks", "pre-receive")
	leave := func() {
		t.Helper()
		c := claimed(t, s.store, "r1")
		s.script(hook, "exit 1")
		if err := c.Reserve(ctx, "r1", time.Hour); !errors.Is(err, git.ErrDeclined) {
			t.Fatal(err)
		}
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if _, err := clone.Claim(ctx, "k", Holder{Owner: "you", Run: "r2"}, ttl); !errors.Is(err, ErrTaken) {
		t.Fatalf("another clone: %v", err)
	}
	if got := s.state(clone); got.Gone {
		t.Errorf("another clone sees %+v", got)
	}
	// The run itself continues and belongs to a process again.
	c, err := s.store.Claim(ctx, "k", Holder{Owner: "again", Run: "r1"}, ttl)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.state(clone); !got.Gone {
		t.Errorf("of a process that has died: %+v", got)
	}
	if err := c.Release(ctx); err != nil {
		t.Fatal(err)
	}
	leave()
	clone.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := clone.Claim(ctx, "k", Holder{Owner: "you", Run: "r2"}, ttl); err != nil {
		t.Errorf("later: %v", err)
	}
}

// A run whose state folder is removed leaves nothing that keeps its issue from others, and its journal is gone.
func TestLeaveWithoutStateFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	state := filepath.Join(t.TempDir(), "state")
	s.store.waitDir = filepath.Join(state, "left")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	c := claimed(t, s.store, "r1")
	s.script(filepath.Join(s.bare(), "hooks", "pre-receive"), "exit 1")
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := c.Reserve(t.Context(), "r1", time.Hour); !errors.Is(err, git.ErrDeclined) {
		t.Error(err)
	}
	if _, err := os.Lstat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state folder is back: %v", err)
	}
	s.store.alive = func(int, string) bool { return false }
	if got := s.state(s.store); !got.Gone {
		t.Errorf("%+v", got)
	}
}

// Another machine may have the same name and ID: its process does not count as a dead one of this machine.
func TestClaimOfATwinMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	twin := s.clone("twin")
	twin.store.self, twin.store.alive = s.store.self, func(int, string) bool { return false }
	twin.store.waitDir = filepath.Join(t.TempDir(), "left")
	twin.store.self.Started = "1@another-boot"
	claimed(t, s.store, "r1")
	var taken *TakenError
	if _, err := twin.store.Claim(t.Context(), "k", Holder{Owner: "you", Run: "r2"}, ttl); !errors.As(err, &taken) {
		t.Errorf("the twin's claim: %v", err)
	}
	// The same machine after a restart.
	again := s.clone("again")
	again.store.self, again.store.waitDir, again.store.alive = s.store.self, filepath.Join(t.TempDir(), "left"), twin.store.alive
	if err := again.store.recordBoot(); err != nil {
		t.Fatal(err)
	}
	again.store.self.Started = "1@next-boot"
	if err := again.store.recordBoot(); err != nil {
		t.Fatal(err)
	}
	c, err := again.store.Claim(t.Context(), "k", Holder{Owner: "me", Run: "r3"}, ttl)
	if err != nil || c.TakenOverFrom() != "r1" {
		t.Fatalf("after the start: %+v, %v", c, err)
	}
	// A run that was left waits on its own machine, also after a restart.
	if err := c.Reserve(t.Context(), "r3", ttl); err != nil {
		t.Fatal(err)
	}
	waits := func(s *Store) bool {
		states, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return states["k"].Deferred
	}
	again.store.self.Started = "1@last-boot"
	if !waits(again.store) || waits(twin.store) {
		t.Errorf("it waits here: %t; on the twin: %t", waits(again.store), waits(twin.store))
	}
}

// Another machine's claim that expires later than any claim may does not block its issue forever.
func TestClaimFromTheFuture(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	other := s.clone("other")
	other.store.self = Process{Host: "other", PID: 1, Started: "1@other-boot"}
	ahead := func(d time.Duration) { other.store.now = func() time.Time { return time.Now().Add(d) } }
	ahead(time.Hour)
	if _, err := other.store.Claim(t.Context(), "k", Holder{Owner: "r1", Run: "r1"}, MaxTTL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Claim(t.Context(), "k", Holder{Owner: "me", Run: "r2"}, ttl); !errors.Is(err, ErrTaken) {
		t.Errorf("a claim that may last as long: %v", err)
	}
	ahead(10 * 365 * 24 * time.Hour)
	claimed(t, other.store, "r3")
	if _, err := s.store.Claim(t.Context(), "k", Holder{Owner: "me", Run: "r4"}, ttl); err != nil {
		t.Errorf("a claim of ten years: %v", err)
	}
	if _, err := s.store.Claim(t.Context(), "l", Holder{Owner: "me", Run: "r5"}, MaxTTL+1); err == nil {
		t.Error("a claim may be made to last longer")
	}
}

// An error about a lock of a killed git on the remote names the lock, and does not say that somebody holds the claim.
func TestLockedOnTheRemote(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	lock := filepath.Join(s.bare(), prefix+"k.lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(lock, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err := s.store.Claim(t.Context(), "k", Holder{Owner: "me", Run: "r1"}, ttl)
	if err == nil || errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "k.lock") {
		t.Error(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	claimed(t, s.store, "r1")
}

// slow is refs whose swap takes time.
type slow struct {
	refs
	pass func()
}

func (s slow) swap(ctx context.Context, key, old, new string, also ...git.Edit) error {
	defer s.pass()
	return s.refs.swap(ctx, key, old, new, also...)
}

// Nobody works with a claim that others may take before its holder can renew it.
func TestClaimThatTakesTooLong(t *testing.T) {
	everywhere(t, func(s *site) {
		free := s.store.later(0)
		late := s.store.later(0)
		late.refs = slow{s.store.refs, func() { late.now = func() time.Time { return time.Now().Add(ttl/2 + time.Minute) } }}
		if _, err := late.Claim(s.Context(), "k", Holder{Owner: "r1", Run: "r1"}, ttl); !errors.Is(err, git.ErrUnavailable) {
			s.Errorf("the claim is held: %v", err)
		}
		claimed(s, free, "r2")
	})
}
