package pool_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// garbled is a tracker that lists an issue which it cannot read.
type garbled struct{ tracker.Tracker }

func (g garbled) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if key == "bad" {
		return tracker.Issue{}, errors.New("garbled")
	}
	return g.Tracker.Get(ctx, key)
}

// An issue that cannot be read fails, and while it waits for its retry the others are worked.
func TestUnreadableIssueStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Tracker = garbled{f.Config.Run.Tracker}
	f.issue("bad")
	if r := f.one(); r.Verdict.Outcome != journal.Failed || r.Verdict.Counted {
		t.Fatalf("%+v", r.Verdict)
	}
	f.issue("good")
	s, err := f.pool().Sweep(t.Context())
	if err != nil || !slices.ContainsFunc(s.Runs, func(r journal.Record) bool {
		return r.Key == "good" && r.Verdict.Outcome == journal.Succeeded
	}) {
		t.Errorf("%v, %+v", err, s)
	}
	if len(s.Problems) != 1 || s.Problems[0].Where == "" || s.Problems[0].Kept {
		t.Errorf("%+v", s.Problems)
	}
}

// An issue that is worked, is not listed and cannot be read counts by its branch, and for no label: the others are worked.
func TestRunningIssueThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	if _, err := f.Config.Run.Repo.Claim(t.Context(), "bad", worktree.Holder{Owner: "elsewhere/1/x", Run: "r"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	f.Config.Run.Tracker = garbled{f.Config.Run.Tracker} // it does not list it
	f.Config.ByLabel = schedule.Limits{"db": 1}
	f.issue("good", "labels: [no-human, db]")
	plan, err := f.pool().Plan(t.Context())
	if err != nil || len(plan.Work) != 1 || len(plan.Problems) != 1 || plan.Problems[0].Where != "bad" {
		t.Errorf("%v, %+v", err, plan)
	}
	if s := f.sweep(t.Context()); s.Count(journal.Succeeded) != 1 {
		t.Errorf("%+v", s)
	}
}
