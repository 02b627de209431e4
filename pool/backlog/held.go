package backlog

import (
	"cmp"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/git"
)

// cannotBegin returns the reason why no run of the issue can begin, whoever asks for it.
func (v view) cannotBegin(key string) *journal.Skip {
	return cmp.Or(v.whyHeld(key), v.capped)
}

func (v view) whyHeld(key string) *journal.Skip {
	if held := v.held[git.Heads+v.p.BranchPrefix+key]; held != nil {
		return &journal.Skip{Code: journal.SkipHeld, Detail: held.Error()}
	}
	return nil
}
