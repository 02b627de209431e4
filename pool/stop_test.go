package pool_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// A pool that drains ends the runs in progress, and starts no more, in this sweep and in later ones.
func TestDrain(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Parallel = 1
	g.issue("a")
	g.issue("b")
	p := g.pool()
	wait := g.begin(t.Context(), p)
	first := g.next(1)[0]
	p.Drain()
	g.goOn("a", "b")
	s := wait()
	if r := g.only(s); r.Key != first || r.Verdict.Outcome != journal.Succeeded || !s.Interrupted {
		t.Errorf("%+v", s)
	}
	if s, err := p.Sweep(t.Context()); err != nil || len(s.Runs) != 0 || !s.Interrupted {
		t.Errorf("a drained pool worked: %+v, %v", s, err)
	}
	g.idle()
	g.clean()
}

// closableJournal is a journal that can be closed.
type closableJournal struct {
	*store
	closed atomic.Bool
}

func (s *closableJournal) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	if s.closed.Load() {
		return nil, errors.New("database is closed")
	}
	return s.store.Find(ctx, q)
}

// After Drain the journal may be closed: a sweep does not read it.
func TestSweepAfterDrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := &closableJournal{store: f.store}
	f.Config.Run.Store = s
	p := f.pool()
	p.Drain()
	s.closed.Store(true)
	if got, err := p.Sweep(t.Context()); err != nil || !got.Interrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

// One run is stopped by its key; the others continue, and the work is kept.
func TestStopOneRun(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.issue("a")
	g.issue("b")
	p := g.pool()
	if p.Stop("a") || len(p.Running()) != 0 {
		t.Error("something runs before the sweep")
	}
	wait := g.begin(t.Context(), p)
	g.next(2)
	if p.Stop("none") {
		t.Error("an unknown run was stopped")
	}
	for _, r := range p.Running() {
		if r.Run == "" || r.Title != "Do "+r.Key || r.Started.IsZero() {
			t.Errorf("running: %+v", r)
		}
	}
	if !p.Stop("a") {
		t.Error("it was not running")
	}
	if key := g.wait(g.ended, 1, "ended")[0]; key != "a" {
		t.Errorf("%s ended", key)
	}
	g.goOn("b")
	s := wait()
	if got := outcomes(s); got["a"] != journal.Interrupted || got["b"] != journal.Succeeded || s.Interrupted {
		t.Errorf("%v", got)
	}
	if r := g.runs("a")[0]; r.Verdict.Reason.Code != journal.ReasonAsked || r.Verdict.Counted {
		t.Errorf("%+v", r.Verdict)
	}
	g.clean()
}

// A second Stop changes nothing. StopNow does not wait for an agent that does not end: it kills the agent and imports its
// commits.
func TestStopNow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, strings.Replace(endless, "echo started; exec sleep 1000", "trap 'echo started' TERM; echo started; while :; do sleep 0.1; done", 1))
	f.issue("a")
	f.Config.Run.StopGrace = time.Hour
	p := f.pool()
	asked, killed := false, false
	f.onStarted(func(key string) {
		if !asked {
			p.Stop(key)
			p.Stop(key)
			asked = true
			return
		}
		killed = p.StopNow(key)
	})
	if s, err := p.Sweep(t.Context()); err != nil || outcomes(s)["a"] != journal.Interrupted || !killed {
		t.Fatalf("%+v, %v", s, err)
	}
	if r := f.runs("a")[0]; r.Verdict.Reason.Code != journal.ReasonAsked || r.Verdict.Counted || r.Commits != 1 || r.WIP == "" || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// With StopUnlabels a stop removes the pick-up label, so that no sweep continues the work.
func TestStopUnlabels(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.Config.Run.StopUnlabels = true
	p := f.pool()
	f.onStarted(func(key string) { p.Stop(key) })
	s, err := p.Sweep(t.Context())
	if r := f.only(s); err != nil || r.Verdict.Reason.Code != journal.ReasonAsked || strings.Contains(f.labels("a"), "no-human") {
		t.Errorf("%+v, %v, %s", r.Verdict, err, f.labels("a"))
	}
	f.issue("b")
	f.onStarted(func(string) { p.Kill() })
	if s, err = p.Sweep(t.Context()); err != nil || outcomes(s)["b"] != journal.Interrupted || !strings.Contains(f.labels("b"), "no-human") {
		t.Errorf("a shutdown: %+v, %v, %s", s, err, f.labels("b"))
	}
}

// Another process requests the stop through the run's folder.
func TestStopFromElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.onStarted(func(key string) {
		if err := journal.RequestStop(f.runs(key)[0]); err != nil {
			t.Error(err)
		}
	})
	if r := f.one(); r.Verdict.Outcome != journal.Interrupted || r.Verdict.Reason.Code != journal.ReasonAsked || r.Commits != 1 || r.WIP == "" {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// A person who closes an issue also requests the stop: the run ends at once, with the right reason.
func TestStopOfClosedIssue(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.Config.Run.Reconcile = time.Hour
	f.onStarted(func(key string) {
		f.issue("a", "state: closed")
		if err := journal.RequestStop(f.runs(key)[0]); err != nil {
			t.Error(err)
		}
	})
	if r := f.one(); r.Verdict.Outcome != journal.Superseded || r.Verdict.Reason.Unfit.Code != tracker.UnfitClosed || r.Commits != 1 || r.WIP == "" {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// A sweep whose context has ended before it begins is interrupted, and returns no error.
func TestSweepThatMayNotBegin(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(nil)
	if s, err := f.pool().Sweep(ctx); err != nil || !s.Interrupted || len(s.Runs) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Kill ends agents at once, without asking; their commits are kept. It causes no warning.
func TestKill(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `trap '' TERM INT; `+strings.Replace(endless, "exec sleep", "sleep", 1))
	f.Config.Run.StopGrace = time.Hour
	f.Config.Run.Agent = usageAgent{used: agents.Usage{Input: 100}}
	var log strings.Builder
	f.Config.Run.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	f.issue("a")
	p := f.pool()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.onStarted(func(string) { stop(nil); p.Kill(); p.Kill() })
	s := f.sweepBy(ctx, p)
	if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || r.Commits != 1 || r.WIP == "" || !s.Interrupted {
		t.Errorf("%+v", r)
	}
	if s, err := p.Sweep(t.Context()); err != nil || !s.Interrupted || len(s.Runs) != 0 {
		t.Errorf("a sweep after it: %+v, %v", s, err)
	}
	if _, err := p.Recover(t.Context()); !errors.Is(err, pool.ErrEnded) {
		t.Errorf("Recover after it: %v", err)
	}
	if err := p.Requeue(t.Context(), "a", "me", tracker.Explain, ""); err == nil {
		t.Error("the next sweep is asked for what it cannot do")
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
	f.clean()
}

// A stop during the checks of the clean checkout causes no warning.
func TestStopDuringVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Gate, f.Config.Run.Setup = lines("true"), lines("test ! -e a.txt || exec sleep 1000")
	var log strings.Builder
	f.Config.Run.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	f.issue("a")
	p := f.pool()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.onEvent = func(e journal.Event) {
		if e.Kind == journal.EventSetup && e.Place == journal.PlaceCheckout {
			stop(nil)
		}
	}
	s := f.sweepBy(ctx, p)
	if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || r.Commits != 1 {
		t.Errorf("%+v", r)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
	f.clean()
}

// pausingTracker is a tracker that signals the first read of an issue, and waits.
type pausingTracker struct {
	tracker.Tracker
	first       sync.Once
	reads, goOn chan struct{}
}

func (s *pausingTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	s.first.Do(func() {
		close(s.reads)
		<-s.goOn
	})
	return s.Tracker.Get(ctx, key)
}

// A run that has its claim and is about to begin can be stopped: everybody who reads the journal sees it.
func TestStopOfARunThatBegins(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		f := newFixture(t, commits)
		f.issue("a")
		host := &pausingTracker{Tracker: f.Config.Run.Tracker, reads: make(chan struct{}), goOn: make(chan struct{})}
		f.Config.Run.Tracker = host
		p := f.pool()
		stopped := false
		go func() {
			<-host.reads
			if r := f.runs("a")[0]; now {
				stopped = p.StopNow("a")
			} else {
				stopped = !p.StopRun("a", "another") && p.StopRun("a", r.ID)
			}
			close(host.goOn)
		}()
		s, err := p.Sweep(t.Context())
		if err != nil || !stopped || s.Count(journal.Succeeded) != 0 || s.Interrupted {
			t.Errorf("stopped %v: %+v, %v", stopped, s, err)
		}
		if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || r.Verdict.Reason.Code != journal.ReasonAsked || r.Commits != 0 {
			t.Errorf("%+v", r.Verdict)
		}
		if len(p.Running()) != 0 {
			t.Errorf("%+v", p.Running())
		}
		f.clean()
	}
}

// slowClaims is a source of claims whose second claim waits.
type slowClaims struct {
	*worktree.Repo
	calls       atomic.Int32
	waits, goOn chan struct{}
}

func (s *slowClaims) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	if s.calls.Add(1) == 2 {
		close(s.waits)
		<-s.goOn
	}
	return s.Repo.Claim(ctx, key, h, ttl)
}

// A call for an issue that is being worked, which has no claim yet, hides the run from nobody.
func TestStopBesideACallForTheSameIssue(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		f := newFixture(t, endless)
		f.issue("a")
		claims := &slowClaims{Repo: f.Config.Run.Repo, waits: make(chan struct{}), goOn: make(chan struct{})}
		f.Config.Claims = claims
		p := f.pool()
		started := make(chan struct{})
		f.onStarted(func(string) { close(started) })
		var swept, called sync.WaitGroup
		var s pool.Summary
		swept.Go(func() { s, _ = p.Sweep(t.Context()) })
		<-started
		called.Go(func() { _, _ = p.Work(t.Context(), "a") })
		<-claims.waits
		first := f.runs("a")[0].ID
		if running := p.Running(); len(running) != 1 || running[0].Run != first {
			t.Errorf("%+v, want run %s", running, first)
		}
		if named && !p.StopRun("a", first) || !named && !p.Stop("a") {
			t.Error("nothing was stopped")
		}
		close(claims.goOn)
		called.Wait()
		if t.Failed() {
			p.Kill() // its agent is still running
		}
		swept.Wait()
		if r := f.only(s); r.Verdict.Outcome != journal.Interrupted || len(p.Running()) != 0 {
			t.Errorf("%+v, %+v", r.Verdict, p.Running())
		}
		f.clean()
	}
}

// openCounter counts the sandboxes that are opened with a context that has not ended.
type openCounter struct {
	*sandboxes.None
	opened atomic.Int32
}

func (l *openCounter) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if ctx.Err() == nil {
		l.opened.Add(1)
	}
	return l.None.Open(ctx, spec)
}

// stoppingClaims is a source of claims that stops each issue when it is claimed.
type stoppingClaims struct {
	*worktree.Repo
	stop func(key string) bool
}

func (s *stoppingClaims) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	if !s.stop(key) {
		return nil, errors.New("there is nothing to stop")
	}
	return s.Repo.Claim(ctx, key, h, ttl)
}

// A run that was stopped before it began does not begin: no sandbox opens, and nothing is merged.
func TestStopBeforeAnythingBegins(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ gate, merge bool }{"work": {}, "work with a gate": {gate: true}, "a merge": {merge: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			if tt.merge {
				f.one()
			}
			if tt.gate {
				f.Config.Run.Gate = lines("true")
			}
			box, claims := &openCounter{None: sandboxes.NewNone(sandboxes.NoneConfig{})}, &stoppingClaims{Repo: f.Config.Run.Repo}
			f.Config.Run.Sandboxes, f.Config.Claims = box, claims
			p := f.pool()
			claims.stop = p.Stop
			call := p.Work
			if tt.merge {
				call = p.Merge
			}
			r, err := call(t.Context(), "a")
			if err != nil || r.Record.Verdict.Outcome != journal.Interrupted || r.Record.Verdict.Reason.Code != journal.ReasonAsked || f.on("a") != "" {
				t.Errorf("%+v, %v; main has %q", r.Record.Verdict, err, f.on("a"))
			}
			if n := box.opened.Load(); n > 0 {
				t.Errorf("%d sandboxes were opened", n)
			}
			f.clean()
		})
	}
}
