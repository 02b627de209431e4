package pool_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// garbledTracker is a tracker that lists an issue that it cannot read.
type garbledTracker struct{ tracker.Tracker }

func (g garbledTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if key == "bad" {
		return tracker.Issue{}, errors.New("garbled")
	}
	return g.Tracker.Get(ctx, key)
}

// An issue that cannot be read fails, and others are worked while it waits for its retry.
func TestUnreadableIssueStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Tracker = garbledTracker{f.Config.Run.Tracker}
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

// An issue that is being worked, is not listed and cannot be read counts by its branch, and for no label: the others are worked.
func TestRunningIssueThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	if _, err := f.Config.Run.Repo.Claim(t.Context(), "bad", worktree.Holder{Owner: "elsewhere/1/x", Run: "r"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	f.Config.Run.Tracker = garbledTracker{f.Config.Run.Tracker} // it does not list the issue
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

// A file that becomes invalid during a sweep is reported in this sweep, once; one that is corrected meanwhile is not.
func TestBacklogSpoiledDuringASweep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	file := func(key string) string { return filepath.Join(".ralph", "backlog", key+".md") }
	f.issue("a")
	f.write(file("late"), "---\ntitle: [\n---\n")
	f.Config.Run.Emit = func(e journal.Event) {
		switch {
		case e.Kind != journal.EventStarted:
		case e.Key == "a":
			f.write(file("spoiled"), "---\ntitle: [\n---\n")
			f.issue("late")
		case e.Key == "late":
			f.issue("last")
		}
	}
	s := f.sweep(t.Context())
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Where, "spoiled") || s.Count(journal.Succeeded) != 3 {
		t.Errorf("%+v of %d runs", s.Problems, len(s.Runs))
	}
	told := map[string]int{}
	for _, e := range f.events {
		if e.Kind == journal.EventProblem {
			told[strings.TrimSuffix(filepath.Base(strings.Split(e.Text, ":")[0]), ".md")]++
		}
	}
	if !maps.Equal(told, map[string]int{"late": 1, "spoiled": 1}) {
		t.Errorf("told %v", told)
	}
}
