package backlog

import (
	"cmp"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
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

// addReviews adds the request to skips of issues in review, and that issue to the skip of an issue that only waits for its merge.
func (v view) addReviews(skipped []Skipped, issues []tracker.Issue) {
	inReview := map[string]bool{}
	for _, i := range issues {
		inReview[i.Key] = i.Open && i.HasLabel(v.p.Run.Labels.InReview)
	}
	for n := range skipped {
		s := &skipped[n].Skip
		switch {
		case s.Code == journal.SkipReview:
			s.Where = v.last[skipped[n].Issue.Key].Request.URL
		case s.Unfit.Code == tracker.UnfitBlocked && inReview[s.Unfit.Detail]:
			s.WaitsFor, s.Where = s.Unfit.Detail, v.last[s.Unfit.Detail].Request.URL
		}
	}
}
