package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/tracker"
)

// followUps lists ralph's open requests that need another run and may have one now, and those that have used up their rounds.
func (w *Worker) followUps(ctx context.Context, v view) (out, exhausted []FollowUp, err error) {
	follower, ok := tracker.As[tracker.Follower](w.c.Run.Tracker)
	if !ok || w.c.Run.Publish != journal.PublishRequest {
		return nil, nil, nil
	}
	var list []tracker.FollowUp
	if w.c.Run.Requests.MaxRounds >= 0 {
		if list, err = follower.FollowUps(ctx, tracker.FollowUpQuery{Prefix: w.c.BranchPrefix, Answered: v.answered}); err != nil {
			return nil, nil, fmt.Errorf("list requests: %w", err)
		}
	}
	if list, err = w.askedRounds(ctx, v, list); err != nil {
		return nil, nil, err
	}
	keys := func() (all []string) {
		for _, f := range list {
			all = append(all, f.Key)
		}
		return all
	}
	if err := v.read(ctx, keys()); err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(f tracker.FollowUp) bool {
		c, claimed := v.claims[f.Key]
		return claimed && (c.Err != nil || tally.Held(c)) || !v.wanted(f.Key) || v.waits(f.Key)
	})
	issues, err := tracker.Read(ctx, w.c.Run.Tracker, keys()) // an issue that is not found is not open
	if err != nil {
		return nil, nil, err
	}
	for n, f := range list {
		issue, t := issues[n], v.tally[f.Key]
		follow := FollowUp{f, issue, t.Rounds, v.claims[f.Key].Record.Mark}
		switch {
		case !issue.Open || issue.HasLabel(w.c.Run.Labels.NeedsHuman):
		case t.Asked != nil && !t.Asked.Request && w.works(issue): // a person wants a new run of the issue
		case issue.HasLabel(w.c.Run.Labels.NeedsInfo) && t.Hash == issue.Hash(): // nobody has answered
		case t.Asked != nil && t.Asked.Request, t.Rounds < w.c.Run.Requests.MaxRounds:
			out = append(out, follow)
		case issue.Unfit(w.c.Require, w.c.Exclude).Code == "": // a person has put it back
		default:
			exhausted = append(exhausted, follow)
		}
	}
	return out, exhausted, nil
}

// answered is the time of the latest comment that the issue's pushed runs have answered.
func (v view) answered(ctx context.Context, key string) (time.Time, error) {
	runs, err := v.w.history(ctx, key)
	return tally.Answered(runs, v.claims[key].Record), err
}
