package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The request to stop reaches an earlier job that died before its last checks: they are cut, as those of any run.
func TestStopWhileAJobIsRecovered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	gate, slow := newPipe(t), filepath.Join(t.TempDir(), "slow")
	j := f.job(job.StrategyMerge)
	j.Run.Gate = lines(`test ! -e ` + slow + ` || { echo > ` + gate.path + `; exec sleep 1000; }`)
	f.onStage(journal.StageVerify, func(journal.Record) { runtime.Goexit() })
	var dying sync.WaitGroup
	dying.Go(func() { _, _ = j.Do(t.Context()) })
	dying.Wait()
	f.onStage(journal.StageVerify, nil)
	runs := f.runs("")
	if len(runs) != 1 || runs[0].Stage != journal.StageVerify {
		t.Fatalf("%+v", runs)
	}
	runs[0].PID = deadPID
	if err := f.store.Save(t.Context(), runs[0]); err != nil {
		t.Fatal(err)
	}
	f.bury(f.repo)
	f.write("README", "the base has moved\n") // so that the gate runs again
	f.commit("move")
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, interrupt := context.WithCancelCause(t.Context())
	gate.then(func() { interrupt(nil) })
	var ended []journal.Record
	j.Recovered = func(r journal.Record) { ended = append(ended, r) }
	_, _ = j.Do(ctx)
	if len(ended) != 1 || ended[0].ID != runs[0].ID || ended[0].Verdict.Outcome != journal.Interrupted || ended[0].Facts.Cut != journal.StageVerify {
		t.Errorf("%+v", ended)
	}
}
