package hold

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/worktree"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

const ttl = time.Hour

// site is a repository whose clock can be set forward.
type site struct {
	*testing.T
	dir     string
	ahead   atomic.Int64
	onClock func() // called when a claim asks for the time
	repo    *worktree.Repo
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: filepath.Join(t.TempDir(), "repo"), onClock: func() {}}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.repo = s.open()
	return s
}

func (s *site) open() *worktree.Repo {
	s.Helper()
	now := func() time.Time {
		s.onClock()
		return time.Now().Add(time.Duration(s.ahead.Load()))
	}
	repo, err := worktree.Open(s.Context(), s.dir, worktree.Options{StateDir: filepath.Join(s.TempDir(), "state"), Now: now})
	if err != nil {
		s.Fatal(err)
	}
	return repo
}

// expire sets the clock to a time at which others may take claims that nobody renews.
func (s *site) expire() { s.ahead.Add(int64(ttl + 5*time.Minute)) }

func (s *site) take(repo *worktree.Repo, run string) (*worktree.Claim, error) {
	return repo.Claim(s.Context(), "k", worktree.Holder{Owner: "o/" + run, Run: run}, ttl)
}

// run claims the issue for a run.
func (s *site) run(id string, change func(*Config)) (*Claim, *halt.Switch) {
	s.Helper()
	ref, err := s.take(s.repo, id)
	if err != nil {
		s.Fatal(err)
	}
	c := Config{Run: id, Kind: journal.KindIssue, TTL: ttl, Stop: halt.New(), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	return New(ref, c), c.Stop
}

// steal lets another process take the expired claim.
func (s *site) steal() {
	s.Helper()
	s.expire()
	if _, err := s.take(s.open(), "thief"); err != nil {
		s.Fatal(err)
	}
}

// unreachable returns a context in which no renewal gets an answer.
func unreachable(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(worktree.ErrRemote)
	return ctx
}

// tree pushes a branch that is on the remote already, and records the arguments.
type tree struct {
	claim  *worktree.Claim
	record worktree.ClaimRecord
}

func (p *tree) Push(ctx context.Context, _ string, c *worktree.Claim, r worktree.ClaimRecord, finish bool) error {
	p.claim, p.record = c, r
	switch {
	case c == nil:
		return nil
	case finish:
		return c.Finish(ctx, r)
	}
	return c.SetRecord(ctx, r)
}

func (s *site) expect(c *Claim, stop *halt.Switch, held, valid bool) {
	s.Helper()
	if c.Held() != held || c.Valid() != valid || stop.Is(journal.StopClaimLost) == held {
		s.Errorf("held %t, valid %t, stopped %t; want held %t, valid %t", c.Held(), c.Valid(), stop.Is(journal.StopClaimLost), held, valid)
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, stop := s.run("r1", nil)
	s.expect(c, stop, true, true)
	for _, ctx := range []context.Context{t.Context(), unreachable(t.Context())} { // a valid claim needs no answer
		if !c.MayAct(ctx) || !c.MayPublish(ctx, true) || !c.MayPublish(ctx, false) {
			t.Error("it may not act")
		}
	}
	if c.Lost(nil) || c.Lost(worktree.ErrRemote) {
		t.Error("it is lost")
	}
	s.expect(c, stop, true, true)
}

// A run that begins without its claim never acts.
func TestLostBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := halt.New()
	c := New(nil, Config{Run: "r1", Kind: journal.KindIssue, TTL: ttl, Stop: stop, Log: slog.New(slog.DiscardHandler)})
	s.expect(c, stop, false, false)
	if c.MayAct(t.Context()) || c.MayPublish(t.Context(), true) || c.MayPublish(t.Context(), false) {
		t.Error("it may act")
	}
	if _, ok := c.Outcome(); ok || c.Mark() != "" || c.Heartbeat(t.Context()) {
		t.Error("it says something")
	}
	if err := c.Reserve(t.Context(), ttl); err != nil {
		t.Error(err)
	}
}

// An expired claim is renewed before the run acts. A claim that cannot be renewed is lost for good.
func TestExpired(t *testing.T) {
	t.Parallel()
	for name, may := range map[string]func(*Claim, context.Context) bool{
		"act":     (*Claim).MayAct,
		"publish": func(c *Claim, ctx context.Context) bool { return c.MayPublish(ctx, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", nil)
			s.expire()
			s.expect(c, stop, true, false)
			if !may(c, t.Context()) {
				t.Error("it is not renewed")
			}
			s.expect(c, stop, true, true)
			s.expire()
			if may(c, unreachable(t.Context())) {
				t.Error("it may act without an answer")
			}
			s.expect(c, stop, false, false)
			if may(c, t.Context()) {
				t.Error("it may act again")
			}
		})
	}
}

// A renewal whose answer comes when others may already take the claim does not keep it.
func TestRenewedTooLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, stop := s.run("r1", nil)
	looks := 0
	s.onClock = func() {
		if looks++; looks == 4 { // by then the claim is written
			s.expire()
		}
	}
	if c.MayPublish(t.Context(), false) {
		t.Error("it may publish")
	}
	s.expect(c, stop, false, false)
}

// The renewal before an effect detects that another process has the claim, whatever the run's clock says.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, stop := s.run("r1", nil)
	s.steal()
	s.ahead.Store(0) // the run's clock is behind
	s.expect(c, stop, true, true)
	if c.MayPublish(t.Context(), false) {
		t.Error("it may publish")
	}
	s.expect(c, stop, false, false)
	if c.MayAct(t.Context()) || c.MayPublish(t.Context(), true) {
		t.Error("it may act")
	}
}

func TestLostWhileWorking(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*site, *Claim){
		"taken":   func(s *site, _ *Claim) { s.steal(); s.ahead.Store(0) },
		"expired": func(s *site, _ *Claim) { s.expire() }, // no time is left for an answer
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", func(c *Config) { c.TTL = 30 * time.Millisecond })
			lose(s, c)
			if !c.Heartbeat(t.Context()) {
				t.Error("it is not lost")
			}
			<-stop.Asked.Done()
			s.expect(c, stop, false, false)
		})
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, stop := s.run("r1", func(c *Config) { c.TTL = 3 * time.Millisecond })
	before := c.ref.Holder().Expires
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	s.onClock = func() {
		if c.ref.Holder().Expires.After(before) { // it was renewed
			cancel(nil)
		}
	}
	if c.Heartbeat(ctx) {
		t.Error("it is lost")
	}
	s.expect(c, stop, true, true)
}

// A push that ends the claim while the claim expires leaves it to this run. A claim that only expired may still be free.
func TestExpiredDuringThePush(t *testing.T) {
	t.Parallel()
	for name, pushed := range map[string]bool{"pushed": true, "not pushed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", func(c *Config) { c.TTL = 30 * time.Millisecond })
			s.expire()
			if !c.Heartbeat(t.Context()) {
				t.Error("it is not lost")
			}
			if pushed {
				if err := c.PushAndFinish(t.Context(), &tree{}, journal.Record{Run: journal.Run{ID: "r1", Kind: journal.KindIssue}}); err != nil {
					t.Fatal(err)
				}
			}
			s.expect(c, stop, false, false)
			if c.MayAct(t.Context()) != pushed || c.MayPublish(t.Context(), false) || !c.Lapsed() {
				t.Errorf("may act: %t, lapsed: %t", c.MayAct(t.Context()), c.Lapsed())
			}
			if c.Lost(worktree.ErrLost); c.MayAct(t.Context()) || c.Lapsed() {
				t.Error("somebody else has it")
			}
		})
	}
}

// Git refuses the writes of a run that does not know yet that it has lost its claim.
func TestRefusedAfterLoss(t *testing.T) {
	t.Parallel()
	left := report.Pending{Report: "text"}
	for name, write := range map[string]func(*Claim, context.Context, journal.Record) error{
		"push":      func(c *Claim, ctx context.Context, r journal.Record) error { return c.Push(ctx, &tree{}, r, nil) },
		"last push": func(c *Claim, ctx context.Context, r journal.Record) error { return c.PushAndFinish(ctx, &tree{}, r) },
		"spend": func(c *Claim, ctx context.Context, r journal.Record) error {
			return c.Spend(ctx, r.Run, agents.Usage{})
		},
		"announce": func(c *Claim, ctx context.Context, r journal.Record) error { return c.Announce(ctx, r, left) },
		"end":      (*Claim).End,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c, stop := s.run("r1", nil)
			s.steal()
			s.ahead.Store(0)
			if !c.MayPublish(t.Context(), true) {
				t.Error("the push itself shows whether it may")
			}
			err := write(c, t.Context(), journal.Record{Run: journal.Run{ID: "r1", Kind: journal.KindIssue}})
			if !errors.Is(err, worktree.ErrLost) || !c.Lost(err) {
				t.Errorf("%v", err)
			}
			s.expect(c, stop, false, false)
		})
	}
}

// A claim that was left belongs to the same run only, until its TTL has passed.
func TestLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, _ := s.run("r1", nil)
	if err := c.Reserve(t.Context(), ttl); err != nil {
		t.Fatal(err)
	}
	if _, err := s.take(s.repo, "r2"); !errors.Is(err, worktree.ErrTaken) {
		t.Errorf("another run: %v", err)
	}
	again, _ := s.run("r1", nil)
	if err := again.Reserve(t.Context(), ttl); err != nil {
		t.Fatal(err)
	}
	s.expire()
	s.run("r2", nil)
}
