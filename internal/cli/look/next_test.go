package look

import (
	"slices"
	"testing"

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
