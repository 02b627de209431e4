package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
)

// An issue that arrives during a sweep is started while another run is still on, whether the pool is told or looks itself.
func TestIssueThatArrivesIsStarted(t *testing.T) {
	t.Parallel()
	for name, refresh := range map[string]time.Duration{"woken": time.Hour, "by itself": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			g.Config.Refresh = refresh
			g.issue("long")
			p := g.pool()
			wait := g.begin(t.Context(), p)
			g.next(1)
			g.issue("new")
			if refresh == time.Hour {
				p.Wake()
			}
			if keys := g.next(1); keys[0] != "new" {
				t.Errorf("%s started", keys[0])
			}
			g.goOn("new", "long")
			if s := wait(); s.Count(journal.Succeeded) != 2 {
				t.Errorf("%+v", s)
			}
			g.clean()
		})
	}
}

// The limit is the pool's, however many sweeps run, and may change meanwhile.
func TestLimitOfAllSweeps(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Parallel = 2
	var keys []string
	for i := range 5 {
		keys = append(keys, fmt.Sprint("task-", i))
		g.issue(keys[i])
	}
	p := g.pool()
	first, second := g.begin(t.Context(), p), g.begin(t.Context(), p)
	g.next(2)
	if n := len(p.Running()); n != 2 {
		t.Errorf("%d are running", n)
	}
	if busy := p.SetParallel(3); busy != 2 {
		t.Errorf("%d are busy", busy)
	}
	g.next(1)
	p.SetParallel(1) // those that run go on
	g.goOn(keys...)
	worked := map[string]int{}
	for _, s := range []pool.Summary{first(), second()} {
		for _, r := range s.Runs {
			worked[r.Key]++
		}
	}
	for _, key := range keys {
		if worked[key] != 1 {
			t.Errorf("%s was worked %d times", key, worked[key])
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var peaks []int // how many were on when each began
	n := 0
	for _, e := range g.events {
		switch e.Kind {
		case journal.EventStarted:
			n++
			peaks = append(peaks, n)
		case journal.EventEnded:
			n--
		}
	}
	if want := []int{1, 2, 3, 1, 1}; !slices.Equal(peaks, want) {
		t.Errorf("running when each began: %v, want %v", peaks, want)
	}
}

// A sweep without a slot waits for one, also before it has looked at the backlog.
func TestNoSlotForNow(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.issue("fix")
	p := g.pool()
	if busy := p.SetParallel(0); busy != 0 {
		t.Errorf("%d are busy", busy)
	}
	wait := g.begin(t.Context(), p)
	p.Wake()
	p.SetParallel(1)
	g.next(1)
	p.SetParallel(0)
	g.issue("later")
	p.Wake()
	if n := len(p.Running()); n != 1 {
		t.Errorf("%d are running", n)
	}
	g.goOn("fix")
	p.SetParallel(1)
	g.next(1)
	g.goOn("later")
	if s := wait(); s.Count(journal.Succeeded) != 2 {
		t.Errorf("runs: %+v", s.Runs)
	}
}

// No more issues with a label are worked at a time than may be, and the rest begins when one of them ends.
func TestLimitByLabel(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Parallel, g.Config.ByLabel, g.Config.AllowOverlap = 4, schedule.Limits{"db": 1}, true
	g.issue("a", "labels: [no-human, DB]", "priority: 1")
	g.issue("b", "labels: [no-human, db]", "priority: 2")
	g.issue("c", "priority: 3")
	p := g.pool()
	wait := g.begin(t.Context(), p)
	if got := g.next(2); !slices.Contains(got, "a") || !slices.Contains(got, "c") {
		t.Fatalf("%q started", got)
	}
	if plan, err := p.Plan(t.Context()); err != nil || len(plan.After) != 1 || plan.After[0].Issue.Key != "b" || plan.After[0].Skip.Code != journal.SkipBusy {
		t.Errorf("%+v, %v", plan, err)
	}
	g.goOn("c")
	g.wait(g.ended, 1, "ended")
	for _, r := range p.Running() {
		if r.Key == "b" {
			t.Error("b is worked while a is")
		}
	}
	g.goOn("a")
	if got := g.next(1); got[0] != "b" {
		t.Errorf("%q started", got)
	}
	g.goOn("b")
	if s := wait(); s.Count(journal.Succeeded) != 3 {
		t.Errorf("%+v", s)
	}
	g.clean()
}

// A pool that drains ends what is on, and starts nothing more, in this sweep and in later ones.
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

// closable is a journal that can be closed.
type closable struct {
	*store
	closed atomic.Bool
}

func (s *closable) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	if s.closed.Load() {
		return nil, errors.New("database is closed")
	}
	return s.store.Find(ctx, q)
}

// After Drain the journal may be closed: a sweep does not read it.
func TestSweepAfterDrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := &closable{store: f.store}
	f.Config.Run.Store = s
	p := f.pool()
	p.Drain()
	s.closed.Store(true)
	if got, err := p.Sweep(t.Context()); err != nil || !got.Interrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

// One run is stopped by its key; the others go on, and the work is kept.
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

// Who asks again changes nothing. StopNow does not wait for an agent that does not end: it is killed, and its commits are imported.
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

// A stop may take the pick-up label away, so that no sweep continues the work.
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

// Another process asks by the run's folder.
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

// Whoever closes an issue asks for the stop as well: the run ends at once, and knows why.
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

// A sweep whose context has ended before it began is stopped, and no error.
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

// Kill ends agents at once, without asking; what they committed is kept. It is nothing to warn of.
func TestKill(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `trap '' TERM INT; `+strings.Replace(endless, "exec sleep", "sleep", 1))
	f.Config.Run.StopGrace = time.Hour
	f.Config.Run.Agent = telling{used: agents.Usage{Input: 100}}
	var log strings.Builder
	f.Config.Run.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	f.issue("a")
	p := f.pool()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.onStarted(func(string) { stop(nil); p.Kill(); p.Kill() })
	s, err := p.Sweep(ctx)
	if err != nil {
		t.Fatal(err)
	}
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

// What a sweep works from is what was there when it began: a person who checks out something else meanwhile changes
// neither where runs start nor where they are merged to.
func TestBaseIsPinned(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishMerge} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			g.Config.Parallel, g.Config.Run.Publish = 1, publish
			g.issue("a", "priority: 1")
			g.issue("b", "priority: 2")
			wait := g.begin(t.Context(), g.pool())
			g.next(1)
			g.git(g.repo, "switch", "-qc", "elsewhere")
			g.write("elsewhere.txt", "x")
			g.commit("something else")
			elsewhere := g.git(g.repo, "rev-parse", "elsewhere")
			g.goOn("a")
			g.next(1)
			g.goOn("b")
			for _, r := range wait().Runs {
				if r.Verdict.Outcome != journal.Succeeded || r.Base != "main" {
					t.Errorf("%s: %+v", r.Key, r)
				}
			}
			where := "ralph/b"
			if publish == journal.PublishMerge {
				where = "main"
			}
			if files := g.git(g.repo, "ls-tree", "--name-only", where); strings.Contains(files, "elsewhere") || !strings.Contains(files, "b.txt") {
				t.Errorf("%s has %s", where, files)
			}
			if now := g.git(g.repo, "rev-parse", "elsewhere"); now != elsewhere {
				t.Error("the other branch was changed")
			}
			g.clean()
		})
	}
}

// Pools of different names on one store do not see each other's runs.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "exit 1")
	f.issue("a")
	f.Config.Run.Name = "first"
	if r := f.one(); r.Verdict.Outcome != journal.Failed || r.Pool != "first" {
		t.Fatalf("%+v", r)
	}
	if s := f.sweep(t.Context()); skips(s)["a"] != journal.SkipRetry {
		t.Errorf("its own failure is not seen: %+v", s)
	}
	f.pretend("a", journal.StageWork, nil) // a dead run of the first

	f.Config.Run.Name, f.Config.Run.Options.Command = "second", []string{"sh", "-c", commits}
	s := f.sweep(t.Context())
	if r := f.only(s); r.Verdict.Outcome != journal.Succeeded || r.Attempt != 1 || r.Pool != "second" {
		t.Errorf("%+v", s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Kind == journal.EventRecovered {
			t.Errorf("the second pool recovered %+v", e)
		}
	}
	first, err := f.store.Find(t.Context(), journal.Query{Pool: "first"})
	if err != nil || len(first) != 1 || !first[0].Ended.IsZero() {
		t.Errorf("runs of the first: %+v, %v", first, err)
	}
}

// A single issue is worked by its key, whatever it waits for; what is no issue is an error.
func TestWorkerWorksOneIssue(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a", "labels: [no-human, needs-human]")
	f.issue("b")
	w, err := pool.NewWorker(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Work(t.Context(), "a"); err != nil || r.Record.Verdict.Outcome != journal.Succeeded || r.Skip != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := w.Work(t.Context(), "none"); err == nil {
		t.Error("no issue was worked")
	}
	if strings.Contains(f.text("b"), "ralph:") {
		t.Error("another issue was worked")
	}
	f.clean()
}

// A configuration is refused with everything that is wrong with it.
func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := pool.New(pool.Config{Parallel: -1, Limit: -1, Refresh: -1, BranchPrefix: "bad..prefix", Require: []string{" "}, ByLabel: schedule.Limits{"db": -1}})
	for _, want := range []string{"Repo", "Store", "Sandboxes", "Run.Tracker", "Run.Agent", "Parallel", "Limit and Refresh", "BranchPrefix", "empty label", `label "db"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
	f := newFixture(t, commits)
	f.Config.Run.Publish, f.Config.Run.GateOn, f.Config.Run.Protected = "x", run.GateOn("y"), []string{"["}
	f.Config.Run.StopGrace, f.Config.Run.ClaimTTL = -1, 1
	_, err = pool.New(f.Config)
	for _, want := range []string{`"x"`, `"y"`, `"["`, "StopGrace", "ClaimTTL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
	f = newFixture(t, commits)
	f.Config.Run.Next, f.Config.Run.Labels.InReview, f.Config.Exclude = agents.Chain{{}}, "No-Human", []string{"no-human"}
	_, err = pool.New(f.Config)
	for _, want := range []string{"Next[0].Agent", "Labels.InReview", "Exclude has"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
}

// Events of a run are read back from its folder as the observer saw them.
func TestEventsAreInTheFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	r := f.one()
	var stored []journal.Event
	if err := journal.ReadEvents(r.Dir, func(e journal.Event) error { stored = append(stored, e); return nil }); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	observed := map[uint64]journal.EventKind{}
	for _, e := range f.events {
		observed[e.Seq] = e.Kind
	}
	if len(stored) < 5 || stored[0].Kind != journal.EventStarted || stored[len(stored)-1].Kind != journal.EventEnded {
		t.Errorf("%+v", stored)
	}
	for _, e := range stored {
		if kind, ok := observed[e.Seq]; !ok || kind != e.Kind || e.Run != r.ID || e.Key != "a" {
			t.Errorf("%+v was observed as %v", e, kind)
		}
	}
}
