package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
)

// Rebased commits have to pass the gate, whatever happens between the rebase and the merge, and whatever the gate is by then.
func TestRebasedCommitsPassTheGateAfterAStop(t *testing.T) {
	t.Parallel()
	for name, gate := range map[string]bool{"the same gate": true, "the gate is taken away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.Config.Run.Publish, f.Config.Run.GateOn = journal.PublishMerge, config.GateOnWorktree
			stopped, begun := filepath.Join(t.TempDir(), "stopped"), newPipe(t)
			f.Config.Run.Gate = lines(`test ! -f moved || { test -f ` + stopped + ` && exit 1; echo > ` + begun.path + `; exec sleep 1000; }`)
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			begun.then(func() { stop(nil) })
			f.onStage(journal.StageVerify, func(journal.Record) {
				f.write("moved", "")
				f.commit("the base moves")
			})
			if r := f.only(f.sweep(ctx)); !r.Ended.IsZero() || r.Verdict.Outcome != "" {
				t.Fatalf("%+v", r)
			}
			if err := os.WriteFile(stopped, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if !gate {
				f.Config.Run.Gate = nil
			}
			f.onStage("", nil)
			if r := f.only(f.sweep(t.Context())); r.Verdict.Outcome != journal.GateFailed {
				t.Errorf("%+v", r.Verdict)
			}
			if f.exists("a.txt") {
				t.Error("what does not pass the gate was merged")
			}
		})
	}
}

// noFolder puts a file in the place of the folder of an issue's runs.
func (f *fixture) noFolder(key string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.state, "runs", key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// A run that waits to be continued, and whose record was lost meanwhile, does not block its issue.
func TestRunWhoseRecordIsLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	place := f.noFolder("a")
	f.sweep(t.Context())
	if claims, err := f.Config.Run.Repo.Claims(t.Context()); err != nil || !claims["a"].Deferred {
		t.Fatalf("%+v, %v", claims, err)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	f.Config.Run.Store = &journaltest.Memory{}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r.Verdict)
	}
}

// The same for a run that could not tell the remote that it waits.
func TestUntoldRunWhoseRecordIsLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	f.issue("a")
	hook := filepath.Join(bare, "hooks", "pre-receive")
	f.onStage(journal.StageWork, func(journal.Record) {
		if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Error(err)
		}
	})
	if r := f.only(f.sweep(t.Context())); !r.Ended.IsZero() {
		t.Fatalf("%+v", r)
	}
	f.bury(bare)
	for _, lost := range []string{hook, f.state} {
		if err := os.RemoveAll(lost); err != nil {
			t.Fatal(err)
		}
	}
	f.forget()
	f.Config.Run.Repo = f.open("origin")
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r.Verdict)
	}
	if trees := f.git(f.repo, "worktree", "list"); strings.Contains(trees, "locked") {
		t.Errorf("worktrees:\n%s", trees)
	}
	f.clean()
}

// A run whose folder cannot be written is deferred, and the caller gets the reason.
func TestRunWithoutAFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	place := f.noFolder("a")
	if r, err := f.pool().Work(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), place) || r.Deferred == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r.Verdict)
	}
	f.clean()
}

// pricedAgent is an agent that has spent something.
type pricedAgent struct{ agents.Command }

func (p pricedAgent) NewDecoder() agents.Decoder { return pricedDecoder{p.Command.NewDecoder()} }

type pricedDecoder struct{ agents.Decoder }

func (d pricedDecoder) Finish(e agents.Ending) agents.Report {
	r := d.Decoder.Finish(e)
	r.Usage = agents.Usage{Input: 100, CostUSD: 1}
	return r
}

// The cost of an iteration is stored when it ends, because ralph may die in the gate.
func TestSpendIsStoredBeforeTheGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Agent, f.Config.Run.GateOn = pricedAgent{}, config.GateOnWorktree
	spent := make(chan float64, 10)
	begun, goOn := newPipe(t), newPipe(t)
	t.Cleanup(func() { _ = goOn.file.Close() }) // open until the last gate has read
	f.Config.Run.Gate = lines(`echo > ` + begun.path + `; read line < ` + goOn.path)
	begun.then(func() {
		for _, r := range f.runs("a") {
			spent <- r.Facts.Usage.CostUSD
		}
		if _, err := goOn.file.WriteString("go on\ngo on\n"); err != nil {
			t.Error(err)
		}
	})
	if r := f.one(); r.Facts.Usage.CostUSD != 1 {
		t.Errorf("%+v", r.Facts.Usage)
	}
	if got := <-spent; got != 1 {
		t.Errorf("during the gate %v USD are stored", got)
	}
}

// slowTeller is a tracker whose first report, about progress, lasts until the run writes its final report.
type slowTeller struct {
	tracker.Tracker
	t        *testing.T
	progress chan struct{} // closed when the report of progress begins
	last     chan struct{} // closed when the run is ready for its final report
	entered  chan struct{} // closed when the final report begins
	first    bool
}

func (s *slowTeller) Report(ctx context.Context, key string, r tracker.Report) error {
	if s.first {
		close(s.entered)
		return s.Tracker.Report(ctx, key, r)
	}
	s.first = true
	close(s.progress)
	<-s.last
	select {
	case <-s.entered:
		s.t.Error("the last word is told while the progress still is")
	case <-time.After(200 * time.Millisecond): // it must not come
	}
	return s.Tracker.Report(ctx, key, r)
}

func TestLastWordComesLast(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	s := &slowTeller{
		Tracker: f.Config.Run.Tracker, t: t,
		progress: make(chan struct{}), last: make(chan struct{}), entered: make(chan struct{}),
	}
	f.Config.Run.Tracker, f.Config.Run.ProgressReport = s, time.Nanosecond
	f.store.onStage = func(r journal.Record) {
		switch r.Stage {
		case journal.StageWork:
			<-s.progress
		case journal.StageReport:
			close(s.last)
		}
	}
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r.Verdict)
	}
	if text := f.text("a"); strings.Contains(text, "ralph: working") {
		t.Errorf("the issue says:\n%s", text)
	}
}

// A stop also ends the gate of a run that is recovered: the run is left to the next sweep once more.
func TestStopWhileRecovering(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Publish, f.Config.Run.GateOn = journal.PublishMerge, config.GateOnWorktree
	f.issue("a")
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("moved", "")
		f.commit("the base moves")
	})
	begun := newPipe(t)
	f.Config.Run.Gate = lines(`test ! -f moved || { echo > ` + begun.path + `; exec sleep 1000; }`) // the run has this gate, whoever continues it
	for range 2 {
		ctx, stop := context.WithCancelCause(t.Context())
		begun.then(func() { stop(nil) })
		s := f.sweep(ctx)
		if !s.Interrupted || context.Cause(ctx) == nil || len(s.Runs) > 0 && s.Runs[0].Verdict.Outcome != "" {
			t.Fatalf("%+v", s)
		}
		f.onStage("", nil)
	}
	if r := f.runs("a"); len(r) != 1 || !r[0].Ended.IsZero() || r[0].Stage != journal.StageVerify {
		t.Errorf("%+v", r)
	}
}

// refusingTracker cannot write one report, for a reason that is neither an outage nor a refusal of everything.
type refusingTracker struct {
	tracker.Tracker
	left *atomic.Int64 // reports to refuse
}

func (r refusingTracker) Unwrap() tracker.Tracker { return r.Tracker }

func (r refusingTracker) Report(ctx context.Context, key string, report tracker.Report) error {
	if r.left.Add(-1) >= 0 {
		return errors.New("the form is invalid")
	}
	return r.Tracker.Report(ctx, key, report)
}

// The sweep that cannot write a report says so itself, and the next one writes it.
func TestReportIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	var left atomic.Int64
	left.Store(1)
	f.Config.Run.Tracker, f.Config.Run.ProgressReport = refusingTracker{f.Config.Run.Tracker, &left}, time.Hour
	s := f.sweep(t.Context())
	if len(s.Runs) != 1 || !s.Runs[0].Ended.IsZero() || s.Unavailable != nil || len(s.Broken) != 1 ||
		s.Broken[0].Issue.Key != "a" || s.Broken[0].Skip.Detail != "stage report is left to the next sweep: the form is invalid" {
		t.Errorf("runs %+v, unavailable %v, broken %+v", s.Runs, s.Unavailable, s.Broken)
	}
	if s := f.sweep(t.Context()); s.Count(journal.Succeeded) != 1 || len(s.Broken) > 0 {
		t.Errorf("runs %+v, broken %+v", s.Runs, s.Broken)
	}
	f.clean()
}
