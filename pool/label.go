package pool

import (
	"context"
	"slices"

	"github.com/ralph-pool/ralph/tracker"
)

// label shows the run's end to people.
func (w *worker) label(ctx context.Context) error {
	c := w.change()
	err := w.p.cfg.Tracker.Change(ctx, w.rec.Key, c)
	w.closed = c.Close && err == nil
	return err
}

// change is what the end does to the state. The first required label is the pick-up label: it goes when the work
// is done.
func (w *worker) change() (c tracker.Change) {
	v, l, t := w.rec.Verdict, w.p.cfg.Labels, w.terms()
	switch {
	case v.Outcome == Succeeded:
		c.RemoveLabels = []string{t.Require[0], l.NeedsHuman, l.NeedsInfo}
		if t.Publish == PublishMerge {
			c.Close = true
		} else {
			c.AddLabels = []string{l.InReview}
		}
	case v.Outcome == Superseded: // its labels are a person's doing
	case v.Outcome == NeedsInfo:
		c = tracker.Change{AddLabels: []string{l.NeedsInfo}, RemoveLabels: []string{l.NeedsHuman}}
	case v.Final:
		c = tracker.Change{AddLabels: []string{l.NeedsHuman}, RemoveLabels: []string{l.NeedsInfo}}
	case w.died && !v.Counted: // it has done nothing that an issue has to show
	default:
		c.RemoveLabels = []string{l.NeedsHuman, l.NeedsInfo}
		if v.Outcome.usesAttempt() && l.Failed != "" {
			c.AddLabels = []string{l.Failed}
		}
	}
	for _, own := range []string{l.Claimed, l.Failed} {
		if own != "" && !slices.Contains(c.AddLabels, own) {
			c.RemoveLabels = append(c.RemoveLabels, own)
		}
	}
	return c
}
