package backlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
)

// limitToStartable reduces the plan's Work to the issues that may start now, beside running issues and unmerged branches. Keys
// named by a person wait only for runs of the same sweep.
func (p *Planner) limitToStartable(ctx context.Context, v view, q Query, listed []tracker.Issue, plan *Plan) error {
	over := func(key string) bool {
		_, ended := q.Ended[key]
		return ended && plan.Asked[key] == ""
	}
	queue := slices.DeleteFunc(slices.Clone(plan.Work), func(i tracker.Issue) bool { return q.InProgress[i.Key] || over(i.Key) })
	if len(queue) == 0 || q.Base.Commit == "" || p.AllowOverlap && p.MaxOpen == 0 && len(p.ByLabel) == 0 {
		return nil
	}
	snapshot, err := p.Index.Read(ctx, q.Base.Commit)
	if err != nil {
		return err
	}
	b := schedule.Backlog{Queue: queue, Listed: slices.Clone(listed), Taken: slices.Collect(maps.Keys(q.InProgress)), Open: map[string]time.Time{}}
	if len(p.ByLabel) > 0 {
		b.Read = func(ctx context.Context, key string) (tracker.Issue, error) { return p.readWorked(ctx, key, plan) }
	}
	for _, f := range plan.FollowUp {
		if !over(f.Key) {
			b.Taken, b.Listed = append(b.Taken, f.Key), append(b.Listed, f.Issue)
		}
	}
	limit := 0
	var unmerged map[string]string
	if len(v.keys) == 0 {
		b.Held = func(key string) bool { return tally.Held(v.claims[key]) }
		for key := range v.claims {
			if b.Read != nil && b.Held(key) { // even if the issue is not listed
				b.Taken = append(b.Taken, key)
			}
		}
		limit = p.MaxOpen
		elsewhere := map[string]string{}
		for _, s := range plan.Skipped {
			if s.Skip.Code == journal.SkipDone && s.Skip.Outcome == journal.Succeeded {
				elsewhere[s.Issue.Key] = v.finished[s.Issue.Key].Tip
			}
		}
		if unmerged, err = p.Reviewed(nil).Open(ctx, q.Base, p.BranchPrefix, snapshot.Tips, elsewhere, p.Run.Publish == journal.PublishRequest); err != nil {
			return err
		}
	}
	for key := range unmerged {
		b.Open[key] = v.claims[key].Record.At
	}
	facts, err := snapshot.Facts(ctx, b)
	if err != nil {
		return err
	}
	facts.Limit, facts.AllowOverlap, facts.ByLabel = limit, p.AllowOverlap, p.ByLabel
	plan.applyDecision(schedule.Decide(facts), queue, v, unmerged)
	return nil
}

// readWorked reads an issue that is being worked but not listed. If that fails, it counts for no label and keeps no other issue
// waiting.
func (p *Planner) readWorked(ctx context.Context, key string, plan *Plan) (tracker.Issue, error) {
	issue, err := p.Run.Tracker.Get(ctx, key)
	switch {
	case err == nil || errors.Is(err, tracker.ErrNotFound):
		return issue, nil
	case ctx.Err() != nil || publish.Unreachable(err):
		return issue, fmt.Errorf("read issue %s: %w", key, err)
	}
	err = fmt.Errorf("read the issue, which is being worked; label limits do not count it now: %w", err)
	plan.Problems = append(plan.Problems, tracker.Problem{Where: key, Err: err})
	return tracker.Issue{}, nil
}

// applyDecision applies the scheduler's decision to the plan.
func (p *Plan) applyDecision(d schedule.Decision, queue []tracker.Issue, v view, unmerged map[string]string) {
	issues := map[string]tracker.Issue{}
	for _, i := range queue {
		issues[i.Key] = i
	}
	p.Work = slices.DeleteFunc(p.Work, func(i tracker.Issue) bool { return issues[i.Key].Key != "" })
	for _, key := range d.Begin {
		p.Work = append(p.Work, issues[key])
	}
	skip := func(s schedule.Wait) Skipped {
		switch s.Code {
		case journal.SkipOverlap:
			s.Run = v.claims[s.WaitsFor].Holder.Run
		case journal.SkipUnmerged:
			s.Where = unmerged[s.WaitsFor]
		}
		return Skipped{issues[s.Key], s.Skip}
	}
	for _, s := range d.Wait {
		if s.Code == journal.SkipOverlap || s.Code == journal.SkipBusy {
			p.WaitingForRuns = append(p.WaitingForRuns, skip(s))
		} else {
			p.Skipped = append(p.Skipped, skip(s))
		}
	}
	for _, s := range d.Later {
		p.Postponed = append(p.Postponed, skip(s))
	}
}

// askedSince returns the issues for which a person has asked since their runs ended, and the id of each request.
func (v view) askedSince(ended map[string]string) map[string]string {
	since := map[string]string{}
	for key, known := range ended {
		if a := v.tally[key].Asked; a != nil && a.ID != known {
			since[key] = a.ID
		}
	}
	return since
}
