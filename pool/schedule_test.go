package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
)

// An issue that arrives during a sweep starts while another run is in progress, whether the pool is woken or looks by itself.
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

// The limit belongs to the pool, however many sweeps run, and may change meanwhile.
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
	for range 20 { // so that a random order is noticed
		if on := p.Running(); len(on) != 2 || on[0].Key >= on[1].Key {
			t.Errorf("running: %+v", on)
		}
	}
	if busy := p.SetParallel(3); busy != 2 {
		t.Errorf("%d are busy", busy)
	}
	g.next(1)
	p.SetParallel(1) // the runs in progress continue
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
	var peaks []int // runs in progress when each began
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

// A sweep without a slot waits for one, even before it has listed the backlog.
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

// The number of issues with a label that are worked at a time is limited, and the rest begin when one of them ends.
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
	if plan, err := p.Plan(t.Context()); err != nil || len(plan.WaitingForRuns) != 1 || plan.WaitingForRuns[0].Issue.Key != "b" || plan.WaitingForRuns[0].Skip.Code != journal.SkipBusy {
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

// The base of a sweep is fixed when it begins: a person who checks out something else meanwhile changes neither where runs start
// nor where they are merged.
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
	f.Config.Run.Pool = "first"
	if r := f.one(); r.Verdict.Outcome != journal.Failed || r.Pool != "first" {
		t.Fatalf("%+v", r)
	}
	if s := f.sweep(t.Context()); skips(s)["a"] != journal.SkipRetry {
		t.Errorf("its own failure is not seen: %+v", s)
	}
	f.pretend("a", journal.StageWork, nil) // a dead run of the first pool

	f.Config.Run.Pool, f.Config.Run.Options.Command = "second", []string{"sh", "-c", commits}
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

// A single issue is worked by its key, whatever it waits for; a key that names no issue is an error.
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

// An invalid configuration is refused with all of its errors.
func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := pool.New(pool.Config{Parallel: -1, Limit: -1, Refresh: -1, BranchPrefix: "bad..prefix", Require: []string{" "}, ByLabel: schedule.Limits{"db": -1}})
	for _, want := range []string{
		"Repo", "Store", "Sandboxes", "Run.Tracker", "Run.Agent", "Parallel", "Limit must", "Refresh must", "BranchPrefix", "empty label", `label "db"`,
	} {
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
	f.Config.Run.Fallback, f.Config.Run.Labels.InReview, f.Config.Exclude = agents.Chain{{}}, "No-Human", []string{"no-human"}
	_, err = pool.New(f.Config)
	for _, want := range []string{"Fallback[0].Agent", "Labels.InReview", "Require and Exclude both have"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
}

// Events of a run can be read from its folder as the observer received them.
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
