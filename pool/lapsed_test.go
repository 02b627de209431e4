package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// aheadBy opens the repository with its remote and a clock that is ahead.
func (f *fixture) aheadBy(ahead *atomic.Int64) {
	f.t.Helper()
	repo, err := worktree.Open(f.t.Context(), f.repo, worktree.Options{
		StateDir: f.state, HostDir: f.host, Remote: "origin", Sleep: func(context.Context, time.Duration) error { return nil },
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Config.Run.Repo = repo
}

// lapsedFixture has an agent that counts its runs.
func lapsedFixture(t *testing.T) (f *fixture, bare string, ahead *atomic.Int64, agents func() int) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "agents")
	f = newFixture(t, "echo >> "+count+"; "+commits)
	bare, ahead = f.withRemote(), new(atomic.Int64)
	f.aheadBy(ahead)
	f.issue("a")
	return f, bare, ahead, func() int {
		data, err := os.ReadFile(count)
		if err != nil {
			t.Error(err)
		}
		return len(data)
	}
}

// finishedBy checks that the next sweep ends the run that this one has left, with one report, and without an agent.
func (f *fixture) finishedBy(left, next func() journal.Record, agents func() int) {
	f.t.Helper()
	if r := left(); !r.Ended.IsZero() {
		f.t.Fatalf("it has ended: %+v\n%s", r.Verdict, f.text("a"))
	}
	if r := next(); r.Verdict.Outcome != journal.Succeeded || agents() != 1 || len(f.runs("a")) != 1 {
		f.t.Errorf("%d agents: %+v", agents(), r)
	}
	if text := f.text("a"); strings.Count(text, "**ralph: ") != 1 || strings.Contains(f.labels("a"), "no-human") {
		f.t.Errorf("it says:\n%s", text)
	}
}

// A claim that expires after the commits were merged, and that cannot be renewed, leaves the report to the next sweep.
func TestClaimExpiresBeforeTheReport(t *testing.T) {
	t.Parallel()
	for _, stage := range []journal.Stage{journal.StageReport, journal.StageLabel} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			f, bare, ahead, agents := lapsedFixture(t)
			f.Config.Run.Publish, f.Config.Run.Tracker = journal.PublishMerge, &forge{Tracker: f.Config.Run.Tracker}
			f.onStage(stage, func(journal.Record) {
				ahead.Store(int64(20 * time.Minute))
				if err := os.Rename(bare, bare+".away"); err != nil {
					t.Error(err)
				}
			})
			one := func() journal.Record { return f.only(f.sweep(t.Context())) }
			f.finishedBy(one, func() journal.Record {
				if err := os.Rename(bare+".away", bare); err != nil {
					t.Error(err)
				}
				return one()
			}, agents)
		})
	}
}

// outlivedTracker answers, once, when the caller no longer waits for it.
type outlivedTracker struct {
	tracker.Tracker
	late func() bool
}

func (l outlivedTracker) Unwrap() tracker.Tracker { return l.Tracker }

func (l outlivedTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if l.late() {
		<-ctx.Done()
	}
	return l.Tracker.Get(context.WithoutCancel(ctx), key)
}

// A claim that expires while the commits are published leaves publishing to the next sweep: perhaps they have arrived.
func TestClaimExpiresWhilePublishing(t *testing.T) {
	t.Parallel()
	f, _, ahead, agents := lapsedFixture(t)
	f.Config.Run.ClaimTTL = 3 * time.Second
	var publishing atomic.Bool
	f.Config.Run.Tracker = outlivedTracker{f.Config.Run.Tracker, func() bool { return publishing.Swap(false) }}
	f.onStage(journal.StagePublish, func(journal.Record) {
		publishing.Store(true)
		ahead.Store(int64(20 * time.Minute))
	})
	one := func() journal.Record { return f.only(f.sweep(t.Context())) }
	f.finishedBy(one, one, agents)
}
