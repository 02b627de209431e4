package backlog

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Past is what is known of the runs of an issue that the caller has claimed.
type Past struct {
	Tally    journal.Tally
	Last     journal.Record       // the latest that has ended; zero if none has
	Finished worktree.ClaimRecord // the claim's record, if it says so
	Approved bool                 // title and body are what an earlier run was allowed to work from
}

// WhyNot is nil if a claimed issue may still be worked.
func (p *Planner) WhyNot(ctx context.Context, issue tracker.Issue, past Past, keys []string) (*journal.Skip, error) {
	v := p.newView(keys)
	v.tally[issue.Key], v.last[issue.Key] = past.Tally, past.Last
	if past.Finished.Finished {
		if err := v.note(ctx, issue.Key, past.Finished); err != nil {
			return nil, err
		}
	}
	return v.whyNot(issue), nil
}

// Outdated is why the request of a claimed issue gets no follow-up now; it may have been listed long ago.
func (p *Planner) Outdated(f tracker.FollowUp, issue tracker.Issue, past Past, keys []string) *journal.Skip {
	label, asked := p.Run.Labels.NeedsHuman, past.Tally.Asked
	_, approves := tracker.As[tracker.Approver](p.Run.Tracker)
	switch {
	case len(keys) == 0 && issue.HasLabel(label):
		return &journal.Skip{Code: journal.SkipHuman, Detail: label}
	case asked != nil && !asked.Request && issue.HasLabel(p.Require[0]), asked == nil && f.Reason == tracker.AskedFor:
		return &journal.Skip{Code: journal.SkipRecovered} // a person wants a new run, or another machine was faster
	case approves && !past.Approved:
		return &journal.Skip{Code: journal.SkipEdited, Detail: p.Require[0]}
	}
	return p.excluded(issue)
}

// Unapproved is why nobody who may do so has approved the text of a claimed issue; nil if somebody has, or if the tracker knows no
// approval. With journal.SkipEdited the text has changed since a command set the pick-up label, which has to go.
func (p *Planner) Unapproved(ctx context.Context, issue tracker.Issue, past Past) (*journal.Skip, error) {
	asked, label := past.Tally.Asked, p.Require[0]
	approver, ok := tracker.As[tracker.Approver](p.Run.Tracker)
	if !ok {
		return nil, nil
	}
	if asked != nil && asked.Labelled && !past.Approved {
		return &journal.Skip{Code: journal.SkipEdited, Detail: label}, nil
	}
	_, err := approver.Approved(ctx, issue, label)
	if err == nil || publish.Unreachable(err) {
		return nil, err
	}
	// Whoever may push can have written what a claim knows: it approves only what has ralph's own label.
	if by, is := errors.AsType[*tracker.UnapprovedError](err); is && by.Why == tracker.OwnAccount && asked != nil && past.Approved {
		return nil, nil
	}
	return &journal.Skip{Code: journal.SkipUnapproved, Detail: err.Error()}, nil
}
