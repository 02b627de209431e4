package backlog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
)

// addFollowUps adds ralph's open requests that need another run and may have one now, requests that have used up their rounds,
// and issues with a request that carry an excluded label.
func (p *Planner) addFollowUps(ctx context.Context, v view, plan *Plan) (err error) {
	follower, ok := tracker.As[tracker.Follower](p.Run.Tracker)
	if !ok || p.Run.Publish != journal.PublishRequest {
		return nil
	}
	var list []tracker.FollowUp
	if p.Run.Requests.MaxRounds >= 0 {
		if list, err = follower.FollowUps(ctx, tracker.FollowUpQuery{Prefix: p.BranchPrefix, Answered: v.answered}); err != nil {
			return fmt.Errorf("list requests: %w", err)
		}
	}
	if list, err = p.addAskedRounds(ctx, v, list); err != nil {
		return err
	}
	keys := func() (all []string) {
		for _, f := range list {
			all = append(all, f.Key)
		}
		return all
	}
	if err := v.load(ctx, keys()); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(f tracker.FollowUp) bool {
		c, claimed := v.claims[f.Key]
		return claimed && (c.Err != nil || tally.Held(c)) || !v.isWanted(f.Key) || v.waitsForRetry(f.Key)
	})
	issues, err := tracker.Read(ctx, p.Run.Tracker, keys()) // an issue that is not found counts as closed
	if err != nil {
		return err
	}
	for n, f := range list {
		issue, t := issues[n], v.tally[f.Key]
		follow := FollowUp{f, issue, t.Rounds, v.claims[f.Key].Record.Mark}
		excluded := cmp.Or(p.whyExcluded(issue), v.whyHeld(issue.Key))
		switch {
		case !issue.Open || issue.HasLabel(p.Run.Labels.NeedsHuman):
		case t.Asked != nil && !t.Asked.Request && issue.HasLabel(p.Require[0]): // a person wants a new run of the issue
		case excluded != nil:
			plan.Skipped = slices.DeleteFunc(plan.Skipped, func(s Skipped) bool { return s.Issue.Key == f.Key })
			plan.Skipped = append(plan.Skipped, Skipped{issue, *excluded})
		case issue.HasLabel(p.Run.Labels.NeedsInfo) && t.Hash == issue.Hash(): // nobody has answered
		case t.Asked != nil && t.Asked.Request, t.Rounds < p.Run.Requests.MaxRounds:
			plan.FollowUp = append(plan.FollowUp, follow)
		case issue.Unfit(p.Require, p.Exclude).Code == "": // a person has put it back
		default:
			plan.HandOver = append(plan.HandOver, follow)
		}
	}
	return nil
}

// whyExcluded returns the reason why the request of an issue gets no further run; nil if there is none. The pick-up label does
// not count: an issue in review has none.
func (p *Planner) whyExcluded(i tracker.Issue) *journal.Skip {
	if why := i.Excluded(p.Exclude); why.Code != "" {
		return &journal.Skip{Code: journal.SkipUnfit, Unfit: why}
	}
	return nil
}

// answered returns the time of the latest comment that the issue's pushed runs have answered.
func (v view) answered(ctx context.Context, key string) (time.Time, error) {
	runs, err := journal.Runs(ctx, v.p.Run.Store, v.p.Run.Pool, key)
	return tally.Answered(runs, v.claims[key].Record), err
}

// addAskedRounds adds the requests for which a command asks for another run to those that need one by the forge's state.
func (p *Planner) addAskedRounds(ctx context.Context, v view, list []tracker.FollowUp) ([]tracker.FollowUp, error) {
	commander, ok := tracker.As[tracker.Commander](p.Run.Tracker)
	if !ok {
		return list, nil
	}
	for _, key := range slices.Sorted(maps.Keys(v.tally)) {
		a := v.tally[key].Asked
		if a == nil || !a.Request || !v.isWanted(key) {
			continue
		}
		review, err := commander.Review(ctx, p.BranchPrefix+key)
		if publish.Unreachable(err) {
			return nil, fmt.Errorf("read the request of %s: %w", key, err)
		}
		if err != nil { // the next sweep reads it again
			p.Warn(key, "its request cannot be read: "+err.Error())
		}
		if err != nil || review.Request.Number == 0 {
			continue
		}
		review.Key, review.Reason, review.At = key, tracker.AskedFor, laterOf(review.At, a.At)
		n := slices.IndexFunc(list, func(f tracker.FollowUp) bool { return f.Key == key })
		if n < 0 {
			list = append(list, review)
			continue
		}
		f := &list[n]
		if len(f.Threads) == 0 {
			f.Feedback, f.Threads = f.Feedback+"\n"+review.Feedback, review.Threads
		}
		f.At = laterOf(f.At, review.At)
	}
	return list, nil
}

func laterOf(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
