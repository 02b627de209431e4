package pool_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// pushes is the number of faults that stands for refusing all pushes and nothing else.
const pushes = -2

// byHTTP makes the fixture reach its remote by HTTP. The next faults requests are answered with 503; negative: all.
func (f *fixture) byHTTP(bare string) (faults *atomic.Int32) {
	f.t.Helper()
	faults = &atomic.Int32{}
	f.git(bare, "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path: filepath.Join(f.git(bare, "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		push := strings.HasSuffix(r.URL.RequestURI(), "git-receive-pack")
		if n := faults.Load(); n == pushes && push {
			http.Error(w, "archived", http.StatusForbidden)
			return
		} else if n != pushes && (n < 0 || n > 0 && faults.Add(-1) >= 0) {
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	f.t.Cleanup(s.Close)
	f.git(f.repo, "remote", "set-url", "origin", s.URL+"/"+filepath.Base(bare))
	return faults
}

// TestRemoteAway: one fault of the remote at any stage of a run has no effect. An outage fails no run: the issue gets no report,
// the sweep ends, and a sweep after the outage does the work.
func TestRemoteAway(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]int32{"one fault": 1, "outage": -1} {
		for _, at := range []journal.Stage{journal.StagePrepare, journal.StageVerify, journal.StagePublish, journal.StageRelease} {
			t.Run(name+" at "+string(at), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				bare := f.withRemote()
				faults := f.byHTTP(bare)
				f.issue("a")
				f.onStage(at, func(journal.Record) { faults.Store(outage) })
				s := f.sweep(t.Context())
				f.onStage(at, nil)
				if outage < 0 {
					if s.Unavailable == nil {
						t.Errorf("the sweep does not say that the remote is away: %+v", s)
					}
					for range 3 { // the outage lasts
						f.sweep(t.Context())
					}
					if text := f.text("a"); at != journal.StageRelease && strings.Contains(text, "**ralph: ") || strings.Contains(text, "failed") {
						t.Errorf("said on the issue:\n%s", text)
					}
					faults.Store(0)
					f.git(bare, "update-ref", "-d", "refs/ralph/claims/a") // it has expired meanwhile
					f.sweep(t.Context())
				}
				runs, text := f.runs("a"), f.text("a")
				if end := runs[len(runs)-1]; end.Verdict.Outcome != journal.Succeeded || strings.Count(text, "**ralph: ") != 1 {
					t.Errorf("the run ended %+v\n%s", end.Verdict, text)
				}
				for _, r := range runs {
					if r.Verdict.Outcome == journal.Failed {
						t.Errorf("a run failed: %+v", r.Verdict)
					}
				}
				f.clean()
			})
		}
	}
}

// After an outage of the remote the same process finishes its run: the claim, which it could not change, still names this live
// process.
func TestRemoteBack(t *testing.T) {
	t.Parallel()
	for at, outcome := range map[journal.Stage]journal.Outcome{journal.StagePublish: journal.Succeeded, journal.StageReport: journal.NoChange} {
		for name, shared := range map[string]bool{"": false, " with a folder of the host": true} {
			t.Run(string(at)+name, func(t *testing.T) {
				t.Parallel()
				agent := commits
				if outcome == journal.NoChange { // the claim of commits ends with their push
					agent = `echo "<no-change>nothing to do</no-change>"`
				}
				f := newFixture(t, agent)
				if !shared {
					f.host = ""
				}
				faults := f.byHTTP(f.withRemote())
				f.issue("a")
				f.onStage(at, func(journal.Record) { faults.Store(-1) })
				p := f.pool()
				if s, err := p.Sweep(t.Context()); err != nil || s.Unavailable == nil {
					t.Fatalf("%+v, %v", s, err)
				}
				faults.Store(0)
				s := f.sweepBy(t.Context(), p)
				if r := f.only(s); r.Verdict.Outcome != outcome || r.Ended.IsZero() {
					t.Errorf("%+v", r)
				}
				f.clean()
			})
		}
	}
}

// unreachableTracker is a tracker that does not answer while off is set.
type unreachableTracker struct {
	tracker.Tracker
	off *atomic.Bool
}

func (d unreachableTracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	if d.off.Load() {
		return tracker.Listing{}, &tracker.UnavailableError{Err: errors.New("502")}
	}
	return d.Tracker.List(ctx, q)
}

// A sweep with a run in progress waits out an outage, and starts new issues as soon as it is over.
func TestOutageDuringARun(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	off, told := &atomic.Bool{}, g.told(isProblem)
	g.Config.Run.Tracker, g.Config.Refresh = unreachableTracker{g.Config.Run.Tracker, off}, 20*time.Millisecond
	g.issue("a")
	p := g.pool()
	wait := g.begin(context.WithoutCancel(t.Context()), p)
	g.next(1)
	off.Store(true)
	if text := g.wait(told, 1, "told"); !strings.Contains(text[0], "502") || p.PauseReason() == nil {
		t.Errorf("of the outage: %q, held by %v", text, p.PauseReason())
	}
	g.issue("b")
	off.Store(false)
	if keys := g.next(1); keys[0] != "b" || p.PauseReason() != nil {
		t.Errorf("after the outage: %v started, held by %v", keys, p.PauseReason())
	}
	g.goOn("b")
	g.wait(g.ended, 1, "ended")
	g.goOn("a")
	if s := wait(); s.Unavailable != nil || s.Count(journal.Succeeded) != 2 {
		t.Errorf("%+v", s)
	}
}

// Held may be called at any time, for example while the sweep recovers earlier runs.
func TestHeldFromTheBeginning(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	faults := f.byHTTP(f.withRemote())
	f.issue("a")
	f.onStage(journal.StagePublish, func(journal.Record) { faults.Store(-1) })
	f.sweep(t.Context())
	p, swept := f.pool(), make(chan error, 1)
	go func() {
		_, err := p.Sweep(context.WithoutCancel(t.Context()))
		swept <- err
	}()
	for {
		_ = p.PauseReason()
		select {
		case err := <-swept:
			if err != nil || p.PauseReason() != nil {
				t.Errorf("the sweep ended with %v, held by %v", err, p.PauseReason())
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// A run that meets an outage at its end, while another run is in progress, is ended as soon as the outage is over, and other runs
// begin.
func TestEndMeetsAnOutage(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	faults := g.byHTTP(g.withRemote())
	g.Config.Refresh = 20 * time.Millisecond
	var once sync.Once
	g.onStage(journal.StagePublish, func(journal.Record) { once.Do(func() { faults.Store(-1) }) })
	told := g.told(func(e journal.Event) bool { return e.Kind == journal.EventDeferred })
	g.issue("a")
	g.issue("b")
	wait := g.begin(context.WithoutCancel(t.Context()), g.pool())
	g.next(2)
	g.goOn("a")
	g.wait(told, 1, "deferred")
	g.issue("c")
	faults.Store(0)
	if keys := g.wait(g.ended, 1, "ended"); keys[0] != "a" || !strings.Contains(g.text("a"), "**ralph: succeeded**") {
		t.Errorf("after the outage: %v ended, and of a is told\n%s", keys, g.text("a"))
	}
	if keys := g.next(1); keys[0] != "c" {
		t.Errorf("after the outage: %v started", keys)
	}
	g.goOn("b", "c")
	if s := wait(); s.Unavailable != nil || s.Count(journal.Succeeded) != 3 || len(s.Runs) != 3 || len(s.Skipped)+len(s.Broken) > 0 {
		t.Errorf("%+v", s)
	}
	g.clean()
}

// A sweep that has reached its limit of runs or its budget still ends a run that has met an outage.
func TestEndMeetsAnOutageAtTheLimit(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*pool.Config){
		"runs":   func(c *pool.Config) { c.Limit = 2 },
		"budget": func(c *pool.Config) { c.Run.Caps.Day.Tokens = 2 * ledger.DefaultEstimate().Tokens },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			faults := g.byHTTP(g.withRemote())
			limit(&g.Config)
			g.Config.Refresh = 20 * time.Millisecond
			var once sync.Once
			g.onStage(journal.StagePublish, func(journal.Record) { once.Do(func() { faults.Store(-1) }) })
			// After its run has ended: an outage that is noted once no run is active ends the sweep.
			told := g.told(func(e journal.Event) bool { return isProblem(e) && strings.Contains(e.Text, "origin") })
			g.issue("a")
			g.issue("b")
			wait := g.begin(context.WithoutCancel(t.Context()), g.pool())
			g.next(2)
			g.goOn("a")
			g.wait(told, 1, "held")
			faults.Store(0)
			g.goOn("b")
			if s := wait(); s.Unavailable != nil && name == "runs" || s.Count(journal.Succeeded) != 2 {
				t.Errorf("%+v", s)
			}
			g.clean()
		})
	}
}

// hookedClaims calls a hook before each claim.
type hookedClaims struct {
	*worktree.Repo
	hook func(key string)
}

func (b hookedClaims) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	b.hook(key)
	return b.Repo.Claim(ctx, key, h, ttl)
}

// An issue whose claim meets an outage, while another run is in progress, is tried again when the outage is over.
func TestClaimMeetsAnOutage(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	faults := g.byHTTP(g.withRemote())
	var once sync.Once
	on, told := make(chan bool), g.told(isProblem)
	g.Config.Refresh = 20 * time.Millisecond
	g.Config.Claims = hookedClaims{g.Config.Run.Repo, func(key string) {
		if key == "b" {
			once.Do(func() { <-on; faults.Store(-1) })
		}
	}}
	g.issue("a")
	g.issue("b")
	wait := g.begin(context.WithoutCancel(t.Context()), g.pool(), "a", "b")
	g.next(1)
	close(on)
	if text := g.wait(told, 1, "told"); !strings.HasPrefix(text[0], "no new runs start for now: ") {
		t.Errorf("of the outage: %q", text)
	}
	faults.Store(0)
	if keys := g.next(1); keys[0] != "b" {
		t.Errorf("after the outage: %v started", keys)
	}
	g.goOn("a", "b")
	if s := wait(); s.Unavailable != nil || s.Count(journal.Succeeded) != 2 || len(s.Skipped)+len(s.Broken) > 0 {
		t.Errorf("%+v", s)
	}
}

// After an outage named issues are worked even if some of them have left the backlog meanwhile.
func TestNamedIssuesAreGoneAfterAnOutage(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	faults := g.byHTTP(g.withRemote())
	var once sync.Once
	on := make(chan bool)
	g.Config.Refresh, g.Config.Parallel = 20*time.Millisecond, 2
	g.Config.Claims = hookedClaims{g.Config.Run.Repo, func(key string) {
		if key == "b" {
			once.Do(func() { <-on; faults.Store(-1) })
		}
	}}
	told := g.told(isProblem)
	keys := []string{"a", "b", "c", "d", "e"}
	for _, key := range keys {
		g.issue(key)
	}
	wait := g.begin(context.WithoutCancel(t.Context()), g.pool(), keys...)
	g.goOn("a")
	g.next(2) // a, and c in its place
	for _, key := range []string{"a", "e"} {
		if err := os.Remove(filepath.Join(g.repo, ".ralph", "backlog", key+".md")); err != nil {
			t.Fatal(err)
		}
	}
	close(on)
	g.wait(told, 1, "told")
	faults.Store(0)
	g.goOn("b", "c", "d")
	if s := wait(); s.Unavailable != nil || s.Count(journal.Succeeded) != 4 || len(s.Skipped) != 1 || s.Skipped[0].Issue.Key != "e" || len(s.Broken) > 0 {
		t.Errorf("%+v", s)
	}
}

// If a remote refuses all pushes, for example as an archived project, every sweep reports that while a run waits for it.
func TestPushesRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	faults := f.byHTTP(f.withRemote())
	f.issue("a")
	f.onStage(journal.StagePublish, func(journal.Record) { faults.Store(pushes) })
	f.sweep(t.Context())
	f.onStage(journal.StagePublish, nil)
	for n := range 4 {
		if s := f.sweep(t.Context()); s.Unavailable == nil {
			t.Errorf("sweep %d does not say that the remote refuses: %+v", n, s)
		}
	}
	faults.Store(0)
	f.sweep(t.Context())
	runs := f.runs("a")
	if len(runs) != 1 || runs[0].Verdict.Outcome != journal.Succeeded || runs[0].Published == "" {
		t.Errorf("in the end: %+v", runs)
	}
}

// A merge that a refused push has interrupted reports that on every call, and ends once pushes are accepted again.
func TestMergeWhilePushesAreRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []journal.Stage{journal.StageVerify, journal.StageReport} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			faults := f.byHTTP(f.withRemote())
			f.issue("a")
			f.one()
			f.onStage(at, func(journal.Record) { faults.Store(pushes) })
			p := f.pool()
			for n := range 3 {
				if r, err := p.Merge(t.Context(), "a"); r.Unavailable == nil || !errors.Is(err, worktree.ErrRemote) {
					t.Errorf("merge %d does not say that the remote refuses: %+v, %v", n, r, err)
				}
			}
			f.onStage(at, nil)
			faults.Store(0)
			if r, err := p.Merge(t.Context(), "a"); err != nil || !strings.Contains(f.text("a"), "state: closed") {
				t.Errorf("in the end: %+v, %v\n%s", r, err, f.text("a"))
			}
			f.clean()
		})
	}
}

// If the remote lacks the branch that requests go into, for example after its default branch was renamed, that is noticed before
// an agent is paid.
func TestNoBranchForRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	f.Config.Run.Tracker = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.Config.Run.Publish = journal.PublishRequest
	f.issue("a")
	f.git(bare, "branch", "-m", "main", "trunk")
	for range 2 {
		if s := f.sweep(t.Context()); s.Unavailable == nil || !strings.Contains(s.Unavailable.Error(), "origin has no branch main") || len(f.runs("a")) > 0 {
			t.Errorf("the sweep does not say what is missing, or has begun: %+v", s)
		}
	}
	f.git(bare, "branch", "main", "trunk")
	f.sweep(t.Context())
	if runs := f.runs("a"); len(runs) != 1 || runs[0].Verdict.Outcome != journal.Succeeded {
		t.Errorf("with the branch: %+v", runs)
	}
}

// hookedTracker is a tracker that calls a hook before it lists.
type hookedTracker struct {
	tracker.Tracker
	hook func()
}

func (s hookedTracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	s.hook()
	return s.Tracker.List(ctx, q)
}

// Everything that ends a sweep also ends it while it lists the backlog.
func TestSweepEndsWhileListing(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	faults := g.byHTTP(g.withRemote())
	g.onStage(journal.StagePublish, func(journal.Record) { faults.Store(-1) })
	var p *pool.Pool
	var lists atomic.Int32
	g.Config.Refresh = 20 * time.Millisecond
	g.Config.Run.Tracker = hookedTracker{g.Config.Run.Tracker, func() {
		if lists.Add(1) != 2 {
			return
		}
		g.next(1)
		g.issue("b")
		g.goOn("a", "b")
		for p.SetParallel(4) > 0 { // the run holds its slot until it has passed on its result
			<-time.After(time.Millisecond) // the pool has no event for that
		}
		faults.Store(0)
	}}
	g.issue("a")
	p = g.pool()
	if s, err := p.Sweep(t.Context()); err != nil || s.Unavailable == nil || len(g.runs("b")) > 0 {
		t.Errorf("%+v, %v, and %d runs of b", s, err, len(g.runs("b")))
	}
}
