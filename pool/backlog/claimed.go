package backlog

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// EarlierRuns has what the caller knows about the earlier runs of an issue that it has claimed.
type EarlierRuns struct {
	Tally    journal.Tally
	Last     journal.Record       // the latest that has ended; zero if none has
	Finished worktree.ClaimRecord // the claim's record, if the issue is finished by it
	Approved bool                 // title and body are those that an earlier run was allowed to work from
}

// WhyNot returns the reason why a claimed issue may no longer be worked; nil if it may.
func (p *Planner) WhyNot(ctx context.Context, issue tracker.Issue, past EarlierRuns, keys []string) (*journal.Skip, error) {
	v := p.newView(keys)
	v.held, _ = p.Run.Repo.HeldBranches(ctx, p.BranchPrefix) // as in a plan
	v.tally[issue.Key], v.last[issue.Key] = past.Tally, past.Last
	if past.Finished.Finished {
		if err := v.addFinished(ctx, issue.Key, past.Finished); err != nil {
			return nil, err
		}
	}
	return v.whyNot(issue), nil
}

// Outdated returns the reason why the request of a claimed issue gets no follow-up now; nil if it does. The listing may be old.
func (p *Planner) Outdated(f tracker.FollowUp, issue tracker.Issue, past EarlierRuns, keys []string) *journal.Skip {
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
	return p.whyExcluded(issue)
}

// Unapproved returns a skip if nobody who may do so has approved the text of a claimed issue; nil if somebody has, or if the
// tracker has no approval. journal.SkipEdited means that the text has changed since a command set the pick-up label, which has to
// be removed.
func (p *Planner) Unapproved(ctx context.Context, issue tracker.Issue, past EarlierRuns) (*journal.Skip, error) {
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
	// Anyone who may push can have written the claim's record, so it counts as approval only if ralph's own account has set the
	// label.
	if by, is := errors.AsType[*tracker.UnapprovedError](err); is && by.Why == tracker.OwnAccount && asked != nil && past.Approved {
		return nil, nil
	}
	return &journal.Skip{Code: journal.SkipUnapproved, Detail: err.Error()}, nil
}

// addFinished adds the record of a finished issue.
func (v view) addFinished(ctx context.Context, key string, d worktree.ClaimRecord) (err error) {
	last := v.last[key]
	known := &last
	if d.Run == "" || last.ID != d.Run { // mostly it is the latest run, which has been read together with those of other issues
		known, err = journal.Lookup(ctx, v.p.Run.Store, v.p.Run.Pool, d.Run)
	}
	v.finished[key], v.reportedHere[key] = d, known != nil && !known.Elsewhere
	return err
}
