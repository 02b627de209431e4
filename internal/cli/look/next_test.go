package look

import (
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Work with a request is merged through the request, so that its review counts.
func TestNextOfARequest(t *testing.T) {
	t.Parallel()
	r := journal.Record{Run: journal.Run{Key: "7", Kind: journal.KindIssue}}
	r.Verdict.Outcome, r.Request.URL = journal.Succeeded, "https://forge.example/7"
	got := nextSteps(RunState{Record: r, State: string(journal.Succeeded)}, worktree.Branch{Name: "ralph/7", Tip: "c0ffee"}, tracker.Issue{Key: "7", Open: true})
	if want := []string{"ralph diff 7", "ralph open 7"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// No command for issues fits a run without an issue.
func TestNextOfAPrompt(t *testing.T) {
	t.Parallel()
	for _, code := range []journal.ReasonCode{journal.ReasonLoop, journal.ReasonPolicy, journal.ReasonConflict} {
		for _, state := range []string{string(journal.Failed), "died", "unfinished"} {
			r := journal.Record{Run: journal.Run{Key: "branch-a", Kind: journal.KindPrompt, Base: "main"}}
			r.Verdict = journal.Verdict{Outcome: journal.Failed, Reason: journal.Reason{Code: code}}
			got := nextSteps(RunState{Record: r, State: state}, worktree.Branch{Name: "a", Tip: "c0ffee"}, tracker.Issue{Key: "branch-a", Open: true})
			if want := []string{"ralph diff branch-a", "ralph logs branch-a"}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q, want %q", code, state, got, want)
			}
		}
	}
}

// TestNextOfARetry checks that the next step after a failure says what the report says: a sweep tries it again.
func TestNextOfARetry(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for text, v := range map[string]journal.Verdict{
		"the first sweep that begins after " + at.Format(time.RFC3339) + " tries it again": {Outcome: journal.Failed, RetryAt: at},
		"the next sweep tries again":                    {Outcome: journal.GateFailed, RetryAt: at.Add(-2 * time.Hour)},
		"the next sweep continues":                      {Outcome: journal.Interrupted},
		"a sweep continues when the cap has room again": {Outcome: journal.OverBudget, Reason: journal.Reason{Code: journal.ReasonCap}},
		"": {Outcome: journal.Failed, Final: true},
	} {
		r := journal.Record{Run: journal.Run{Key: "a", Kind: journal.KindIssue}, State: journal.State{Ended: at, Verdict: v}}
		want := "ralph work a"
		if text != "" {
			want += "  # at once; " + text
		}
		got := nextSteps(RunState{Record: r, State: string(v.Outcome)}, worktree.Branch{}, tracker.Issue{Key: "a", Open: true})
		if want := []string{"ralph logs a", want}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Nothing is to be done for an issue that is merged, closed and cleaned up.
func TestNextOfWhatIsDone(t *testing.T) {
	t.Parallel()
	r := journal.Record{Run: journal.Run{Key: "a", Kind: journal.KindIssue}}
	r.Ended, r.Verdict.Outcome = time.Now(), journal.Succeeded
	if got := nextSteps(RunState{Record: r, State: "merged"}, worktree.Branch{}, tracker.Issue{Key: "a"}); got == nil || len(got) > 0 {
		t.Errorf("%q", got)
	}
}
