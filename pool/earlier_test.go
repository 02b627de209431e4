package pool_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// renamedProvider is a silentProvider with another name.
type renamedProvider struct{ *silentProvider }

func (renamedProvider) Name() string { return "renamed" }

// The provider of a dead run's sandbox ends what the run has left there, whatever provider runs have now.
func TestRecoverFromAnotherSandbox(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := &silentProvider{bindingProvider: newBindingProvider(nil), files: sandboxes.Bind}
	f.Config.Run.Sandboxes, f.Config.Run.EarlierProviders = newBindingProvider(nil), sandboxes.NewRegistry(renamedProvider{s})
	f.issue("a")
	id := f.one().ID
	f.issue("a")
	f.pretend("a", journal.StageWork, func(r *journal.Record) { r.Sandbox = "renamed" })
	s.left.Store(id, true)
	s.away.Store(true)
	if got := f.sweep(t.Context()); len(got.Broken) != 1 {
		t.Errorf("while the engine does not answer: %+v", got)
	}
	s.away.Store(false)
	f.sweep(t.Context())
	if r := f.runs("a")[0]; s.count() != 0 || r.Ended.IsZero() {
		t.Errorf("%d sandboxes are left; ended %v", s.count(), r.Ended)
	}
	f.clean()
}

// A job does not start in a worktree in which an earlier one may still be running.
func TestJobWhereASandboxWasNotClosed(t *testing.T) {
	t.Parallel()
	for name, died := range map[string]bool{"ended": false, "died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			s := &silentProvider{bindingProvider: newBindingProvider(nil), files: sandboxes.Bind}
			f.Config.Run.Sandboxes = renamedProvider{s}
			j := f.job(job.StrategyBranch)
			j.Branch = "topic"
			do(t, j) // makes the worktree
			s.away.Store(true)
			rec := do(t, j).Record
			if !rec.SandboxMayRun || s.count() != 1 {
				t.Fatalf("%+v", rec)
			}
			if died {
				rec.SandboxMayRun, rec.Ended, rec.PID, rec.Stage = false, time.Time{}, deadPID, journal.StageWork
				f.save(rec)
			}
			j.Run.Sandboxes, j.Run.EarlierProviders = newBindingProvider(nil), sandboxes.NewRegistry(renamedProvider{s})
			if res, err := j.Do(t.Context()); err == nil && res.Record.Verdict.Outcome == journal.Succeeded || s.count() != 1 {
				t.Errorf("it has begun: %+v, %v; %d sandboxes", res.Record, err, s.count())
			}
			s.away.Store(false)
			do(t, j)
			s.wantNone(t)
			for _, r := range f.runs("") {
				if r.SandboxMayRun || r.Ended.IsZero() {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Work that only the sandbox of an earlier job has stays there: later jobs do not end that sandbox, and do not begin.
func TestJobWhereWorkIsNotImported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	j := f.job(job.StrategyBranch)
	j.Branch = "topic"
	do(t, j) // makes the worktree
	m := noting{unimportableProvider{newBindingProvider(nil), new(atomic.Int32)}, new([]string)}
	j.Run.Sandboxes, j.Run.Options.Command[2] = m, commits
	for range 3 {
		if res, err := j.Do(t.Context()); err != nil || res.Record.Verdict.Outcome == journal.Succeeded {
			t.Fatalf("%+v, %v", res.Record, err)
		}
	}
	runs := f.runs("")
	if slices.Contains(*m.runs, runs[1].ID) || !runs[1].SandboxMayRun || runs[2].SandboxMayRun || runs[3].SandboxMayRun {
		for _, r := range runs {
			t.Errorf("run %s: unclosed %v, %s; reaped %q", r.ID, r.SandboxMayRun, r.Verdict.Reason.Detail, *m.runs)
		}
	}
}

// noting records the runs whose sandboxes are removed.
type noting struct {
	unimportableProvider
	runs *[]string
}

func (n noting) Reap(_ context.Context, run string) error {
	*n.runs = append(*n.runs, run)
	return nil
}
