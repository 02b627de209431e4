package look

import (
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// The sum includes earlier runs after a run without an agent, and the usage of other machines.
func TestSpentByAllRuns(t *testing.T) {
	t.Parallel()
	var agent, merge journal.Record
	agent.Facts.Usage = agents.Usage{Input: 20, Output: 10, CostUSD: 0.25}
	merge.Earlier = journal.Tally{Final: true, Spent: agent.Facts.Usage}
	if got := sumOf([]journal.Record{agent, merge}); got.Usage != agent.Facts.Usage || got.Unknown != 0 {
		t.Errorf("after a merge: %+v", got)
	}
	merge.Earlier = journal.Tally{Spent: agents.Usage{Input: 90}}
	if got := sumOf([]journal.Record{agent, merge}); got.Input != 90 {
		t.Errorf("with another machine's: %+v", got)
	}
}

// The next steps fit the outcome. They contain no names of files, which an agent chooses: not every shell has comments on a
// command line.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome journal.Outcome
		code    journal.ReasonCode
		detail  string
		want    []string
	}{
		{journal.NeedsInfo, "", "", []string{"ralph edit a  # answer there", "ralph work a"}},
		{journal.PolicyBlocked, journal.ReasonPolicy, "$(id) is protected (ci.yml)\nid", []string{
			"git merge 'ralph/a;x'  # if this is right",
			"ralph retry --fresh a  # if not; say in the issue what not to touch",
		}},
		{journal.Failed, journal.ReasonConflict, "conflict in x by hand: id; to solve it by hand: git -C /r rebase main x", []string{
			"git rebase main 'ralph/a;x'", "git switch main", "ralph merge a",
		}},
		{journal.Failed, journal.ReasonPublish, "a.txt is not committed", []string{"ralph merge a"}},
		{journal.GateFailed, "", "", []string{"ralph logs a", "ralph work a"}},
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Kind: journal.KindIssue, Base: "main"}}
		r.Verdict.Final = true
		r.Verdict.Outcome, r.Verdict.Reason, r.Settings.Publish = c.outcome, journal.Reason{Code: c.code, Detail: c.detail}, journal.PublishMerge
		got := nextSteps(RunState{r, string(c.outcome)}, worktree.Branch{Name: "ralph/a;x", Tip: "1234"}, tracker.Issue{Open: true})
		if want := append([]string{"ralph diff a"}, c.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.outcome, got, want)
		}
	}
}

// The steps after a conflict are those that its reason names, once no attempt is left.
func TestNextStepsOfConflict(t *testing.T) {
	t.Parallel()
	for final, want := range map[bool][]string{
		true:  {"ralph diff a", "git rebase --rebase-merges --onto main 1234567 ralph/a", "git switch main", "ralph merge a"},
		false: {"ralph diff a", "ralph logs a", "ralph work a"},
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Kind: journal.KindIssue, Base: "main"}}
		r.Verdict = journal.Verdict{Outcome: journal.Failed, Final: final, Reason: journal.Reason{Code: journal.ReasonConflict}}
		r.Facts.Solve = []string{"git rebase --rebase-merges --onto main 1234567 ralph/a"}
		got := nextSteps(RunState{r, string(journal.Failed)}, worktree.Branch{Name: "ralph/a", Tip: "1234"}, tracker.Issue{Open: true})
		if !slices.Equal(got, want) {
			t.Errorf("final %t: got %q, want %q", final, got, want)
		}
	}
}

// The command for a merge that was cut off is the same merge.
func TestNextStepOfLeftMerge(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"died": "ralph merge a", "unfinished": "ralph merge a", "running": "ralph logs -f a"} {
		s := RunState{journal.Record{Run: journal.Run{Key: "a", Kind: journal.KindIssue}}, state}
		s.Settings.Attended = true
		if got := nextSteps(s, worktree.Branch{}, tracker.Issue{Open: true}); len(got) == 0 || got[0] != want {
			t.Errorf("%s: got %q, want %q first", state, got, want)
		}
	}
}

// The queue is in the order of the retry times. Runs that are on, over or due are not in it.
func TestRetryQueue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	run := func(key string, ended bool, v journal.Verdict) RunState {
		r := journal.Record{}
		r.Key, r.ID, r.Verdict, r.Started = key, "r-"+key, v, now.Add(-time.Minute)
		if ended {
			r.Ended = now
		}
		return StateOf(r)
	}
	merged := run("merged", true, journal.Verdict{Outcome: journal.Failed, RetryAt: now.Add(time.Second)})
	merged.State = "merged"
	ahead := run("ahead", true, journal.Verdict{Outcome: journal.Failed, RetryAt: now.Add(48 * time.Hour)})
	ahead.Facts.CompletedAt = now.Add(47 * time.Hour) // recorded by a clock that has been set back since
	got := retryQueue([]RunState{
		run("late", true, journal.Verdict{Outcome: journal.Failed, RetryAt: now.Add(time.Hour)}),
		run("soon", true, journal.Verdict{Outcome: journal.GateFailed, RetryAt: now.Add(time.Second)}),
		run("due", true, journal.Verdict{Outcome: journal.Failed, RetryAt: now}),
		run("final", true, journal.Verdict{Outcome: journal.Failed, Final: true, RetryAt: now.Add(time.Second)}),
		run("on", false, journal.Verdict{RetryAt: now.Add(time.Second)}),
		merged, ahead,
	}, now)
	if len(got) != 2 || got[0].Issue != "soon" || got[1].Issue != "late" || got[0].Outcome != "gate-failed" {
		t.Errorf("%+v", got)
	}
}
