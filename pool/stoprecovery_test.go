package pool_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A request to stop reaches an earlier job that died before its last checks: they are cut short like those of any run.
func TestStopWhileAJobIsRecovered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	j := f.job(job.StrategyMerge)
	gate, slow := slowGate(t)
	j.Run.Gate = lines(slow)
	dead := f.dieBeforeGate(func() { _, _ = j.Do(t.Context()) })

	ctx, interrupt := context.WithCancelCause(t.Context())
	gate.then(func() { interrupt(nil) })
	var ended []journal.Record
	j.Recovered = func(r journal.Record) { ended = append(ended, r) }
	_, _ = j.Do(ctx)
	if len(ended) != 1 || ended[0].ID != dead.ID || ended[0].Verdict.Outcome != journal.Interrupted || ended[0].Facts.StoppedStage != journal.StageVerify {
		t.Errorf("%+v", ended)
	}
}

// A person's request to stop an issue reaches the run of it that is being recovered.
func TestStopWhileARunIsRecovered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Publish = journal.PublishMerge
	gate, slow := slowGate(t)
	f.Config.Run.Gate = lines(slow)
	f.issue("a")
	dead := f.dieBeforeGate(func() { _, _ = f.pool().Sweep(t.Context()) })

	p := f.pool()
	gate.then(func() {
		if on := p.Running(); len(on) != 1 || on[0].Run != dead.ID {
			t.Errorf("running: %+v", on)
		}
		if p.StopRun("a", "another") || !p.StopRun("a", dead.ID) {
			t.Error("its run was not stopped, or another")
		}
	})
	ctx, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	r, err := p.Recover(ctx)
	if err != nil || len(r.Interrupted)+len(r.Finished) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if end := append(r.Interrupted, r.Finished...)[0]; end.Verdict.Outcome != journal.Interrupted || end.Facts.Stop != journal.StopAsked {
		t.Errorf("%+v, stopped by %q", end.Verdict, end.Facts.Stop)
	}
}

// slowGate returns a line of a gate that passes until a run has died before it. After that it signals the pipe and hangs.
func slowGate(t *testing.T) (begun pipe, line string) {
	t.Helper()
	begun = newPipe(t)
	return begun, `test "$(git show HEAD:README)" = hello || { echo > ` + begun.path + `; exec sleep 1000; }`
}

// dieBeforeGate makes work die before the last checks of its run, and returns the record of the run. The base moves, so that the
// gate has to run again.
func (f *fixture) dieBeforeGate(work func()) journal.Record {
	f.t.Helper()
	f.onStage(journal.StageVerify, func(journal.Record) { runtime.Goexit() })
	var dying sync.WaitGroup
	dying.Go(work)
	dying.Wait()
	f.onStage(journal.StageVerify, nil)
	runs := f.runs("")
	if len(runs) != 1 || runs[0].Stage != journal.StageVerify {
		f.t.Fatalf("%+v", runs)
	}
	runs[0].PID = deadPID
	if err := f.store.Save(f.t.Context(), runs[0]); err != nil {
		f.t.Fatal(err)
	}
	f.bury(f.repo)
	f.write("README", "the base has moved\n")
	f.commit("move")
	return runs[0]
}
