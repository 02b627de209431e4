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
