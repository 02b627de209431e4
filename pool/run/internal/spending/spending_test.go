package spending_test

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/internal/spending"
)

// What earlier attempts have used of the issue's budget is not left for this one. A person who merges has all of it.
func TestLeft(t *testing.T) {
	t.Parallel()
	of := func(kind journal.Kind, attended bool) *spending.Account {
		a := &spending.Account{Issue: loop.Budget{Tokens: 100}, Own: loop.Budget{Tokens: 90}}
		a.Run.Kind, a.Run.Settings.Attended = kind, attended
		a.Run.Earlier.Spent = agents.Usage{Input: 30}
		return a
	}
	for name, c := range map[string]struct {
		account *spending.Account
		want    int64
	}{
		"issue":  {of(journal.KindIssue, false), 70},
		"merge":  {of(journal.KindIssue, true), 90},
		"prompt": {of(journal.KindPrompt, false), 90},
	} {
		if got := c.account.Remaining(); got.Tokens != c.want {
			t.Errorf("%s: %d, want %d", name, got.Tokens, c.want)
		}
	}
}
