package pool_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// elsewhere moves the next sweep to another machine, which has the backlog and the remote but no state.
func (f *fixture) elsewhere() {
	f.t.Helper()
	f.state, f.store = filepath.Join(f.t.TempDir(), "state"), &store{}
	backlog, err := local.New(local.Config{Dir: filepath.Join(f.repo, ".ralph", "backlog"), LockDir: f.state})
	if err != nil {
		f.t.Fatal(err)
	}
	c := &f.Config.Run
	c.Tracker, c.Store, c.Repo = backlog, f.store, f.open("origin")
}

// Machines that know nothing of each other keep the limits of an issue together: attempts, waiting times and budget.
func TestLimitsHoldOnAllMachines(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; exit 1`)
	f.withRemote()
	f.Config.Run.Agent, f.Config.Run.MaxIterations = pricedAgent{}, 1
	f.Config.Run.Retry = journal.Limits{MaxAttempts: 3, Backoff: -1}
	f.Config.Run.Budget = loop.Budget{CostUSD: 100}
	f.issue("a")
	for attempt := 1; attempt <= 3; attempt++ {
		r := f.one()
		if r.Attempt != attempt || r.Verdict.Final != (attempt == 3) || r.Earlier.Spent.CostUSD != float64(attempt-1) {
			t.Fatalf("attempt %d: %d, %+v, earlier %+v", attempt, r.Attempt, r.Verdict, r.Earlier)
		}
		f.elsewhere()
	}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || skips(s)["a"] != journal.SkipHuman {
		t.Errorf("%d runs, skipped %v", len(s.Runs), skips(s))
	}
}

func TestWaitingTimeHoldsElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; exit 1`)
	f.withRemote()
	f.Config.Run.MaxIterations = 1
	f.issue("a")
	f.one()
	f.elsewhere()
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || skips(s)["a"] != journal.SkipRetry {
		t.Errorf("%d runs, skipped %v", len(s.Runs), skips(s))
	}
}

// The cost of an iteration is on the claim when the iteration ends: another machine finds it, even if this one dies.
func TestSpendIsOnTheClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.Config.Run.Agent = pricedAgent{}
	f.issue("a")
	spent := 0.0
	f.onStage(journal.StageVerify, func(journal.Record) {
		claims, err := f.Config.Run.Repo.Claims(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Error(err)
		}
		spent = claims["a"].Record.Spend.CostUSD
	})
	f.one()
	if spent != 1 {
		t.Errorf("%v USD are on the claim", spent)
	}
}

// Records expire: an old one is removed, but never while somebody holds the claim.
func TestOldRecordsGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	ctx := context.WithoutCancel(t.Context())
	end := func(key string, age time.Duration, held bool) {
		c, err := f.Config.Run.Repo.Claim(ctx, key, worktree.Holder{Owner: "x", Run: "r"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r := worktree.ClaimRecord{Run: "r-" + key, Outcome: "failed", Attempts: 1, At: time.Now().Add(-age)}
		if held {
			err = c.SetRecord(ctx, r)
		} else {
			err = c.End(ctx, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end("old", 31*24*time.Hour, false)
	end("held", 31*24*time.Hour, true)
	end("new", 29*24*time.Hour, false)
	spent, err := f.Config.Run.Repo.Claim(ctx, "spent", worktree.Holder{Owner: "x", Run: "r"}, time.Hour)
	if err == nil { // by a run that has not ended yet
		err = spent.End(ctx, worktree.ClaimRecord{Spend: claim.Spend{CostUSD: 5}})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.sweep(t.Context())
	claims, err := f.Config.Run.Repo.Claims(ctx)
	if _, there := claims["old"]; err != nil || there || claims["held"].Holder.Run != "r" || claims["new"].Record.Attempts != 1 || claims["spent"].Record.Spend.CostUSD != 5 {
		t.Errorf("%+v, %v", claims, err)
	}
}
