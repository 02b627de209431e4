package backlog

import (
	"slices"

	"github.com/ralph-pool/ralph/tracker"
)

// Refusal returns the answer to a command that cannot have an issue worked again; nil: it can. approved means that a person has
// approved the issue's text, and labelled that the command has to set the pick-up label. review is the issue's request; its zero
// value: none.
func (p *Planner) Refusal(c tracker.Command, issue tracker.Issue, approved bool, review tracker.FollowUp, labelled bool) *tracker.Answer {
	if c.Verb == tracker.Fix && c.Text == "" && len(review.Threads) == 0 {
		const none = "No review comment is unanswered. Say what has to be done"
		if c.Elsewhere { // not in a comment
			return tracker.Refuse(none + ".")
		}
		return tracker.Refuse(none + ": `/ralph fix …`.")
	}
	_, approves := tracker.As[tracker.Approver](p.Run.Tracker)
	request := review.Request.Number != 0
	if approves && (request || labelled) && !approved {
		return tracker.Refuse("Nobody has approved the current text of the issue: read it, and add the label %s.",
			tracker.Code(p.Require[0]))
	}
	why := issue.Excluded(p.Exclude)
	labels := p.Run.Labels
	free := issue
	free.Labels = slices.DeleteFunc(slices.Concat(issue.Labels, p.Require[:1]), func(l string) bool {
		return tracker.SameLabel(l, labels.NeedsHuman) || tracker.SameLabel(l, labels.NeedsInfo) || tracker.SameLabel(l, labels.InReview)
	})
	if !request {
		why = free.Unfit(p.Require, p.Exclude)
	}
	if why.Code != "" {
		return tracker.Refuse("The issue cannot be worked now: %s.", tracker.QuoteLine(why.String(), 300))
	}
	return nil
}
