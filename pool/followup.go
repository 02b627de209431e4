package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// followUps lists ralph's own open requests that need another run and may have one now, and those that have had as many
// as they may have: they are a person's.
func (p *Pool) followUps(ctx context.Context, v view) (out, exhausted []FollowUp, err error) {
	follower, ok := tracker.As[tracker.Follower](p.cfg.Tracker)
	if !ok || p.cfg.Publish != PublishRequest || p.cfg.Requests.MaxRounds < 0 {
		return nil, nil, nil
	}
	list, err := follower.FollowUps(ctx, p.cfg.BranchPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list requests: %w", err)
	}
	for _, f := range list {
		c, claimed := v.claims[f.Key]
		if claimed && !c.Gone || !v.wanted(f.Key) || v.last[f.Key].Verdict.RetryAt.After(v.now) {
			continue
		}
		issue, err := p.cfg.Tracker.Get(ctx, f.Key)
		switch {
		case errors.Is(err, tracker.ErrNotFound):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("read issue %s: %w", f.Key, err)
		}
		runs, err := p.cfg.Journal.Runs(ctx, f.Key)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !issue.Open || issue.HasLabel(p.cfg.Labels.NeedsHuman):
		case rounds(runs) >= p.cfg.Requests.MaxRounds:
			exhausted = append(exhausted, FollowUp{f, issue})
		default:
			out = append(out, FollowUp{f, issue})
		}
	}
	return out, exhausted, nil
}

// rounds counts the follow-up runs since the issue was last worked on its own account.
func rounds(runs []Record) int {
	n := 0
	for _, r := range runs {
		switch {
		case r.Ended.IsZero() || r.Verdict.Outcome == Interrupted || r.Verdict.Outcome == AgentUnavailable:
		case r.Verdict.FollowUp == "":
			n = 0
		default:
			n++
		}
	}
	return n
}

// feedbackOf tells the agent what is wrong with its request. Logs and reviews are data.
func feedbackOf(f tracker.FollowUp, base string) string {
	text, _ := tracker.Clean(f.Feedback)
	fence := "~~~~"
	for strings.Contains(text, fence) {
		fence += "~"
	}
	var what string
	switch f.Reason {
	case tracker.ChecksFailed:
		what = "required checks have failed"
	case tracker.Conflict:
		what = fmt.Sprintf("it conflicts with %s; merge %s into your branch and resolve the conflicts", base, base)
	case tracker.ChangesRequested:
		what = "a reviewer asks for changes"
	}
	out := fmt.Sprintf("Your work is already in a request for review, and %s.", what)
	if text != "" {
		out += fmt.Sprintf("\n\n%s\n%s\n%s\n", fence, text, fence)
	}
	return out
}
