package decide

import (
	"slices"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Change returns the change of the issue's labels and state at the end of a run. The first required label is the pick-up label;
// success removes it.
func Change(l tracker.StateLabels, rec journal.Record) (c tracker.Change) {
	v := rec.Verdict
	switch {
	case v.Outcome == journal.Succeeded:
		c.RemoveLabels = []string{l.NeedsHuman, l.NeedsInfo}
		if len(rec.Settings.Require) > 0 {
			c.RemoveLabels = append(c.RemoveLabels, rec.Settings.Require[0])
		}
		if rec.Merges(v) {
			c.Close = true
			c.RemoveLabels = append(c.RemoveLabels, l.InReview)
		} else {
			c.AddLabels = []string{l.InReview}
		}
	case v.Outcome == journal.Superseded: // a person has set its labels
	case v.Outcome == journal.NeedsInfo:
		c = tracker.Change{AddLabels: []string{l.NeedsInfo}, RemoveLabels: []string{l.NeedsHuman}}
	case v.Final:
		c = tracker.Change{AddLabels: []string{l.NeedsHuman}, RemoveLabels: []string{l.NeedsInfo}}
	case rec.Facts.Died() && !v.Counted: // it has done no work
		if rec.Earlier.Outcome == journal.NeedsInfo { // the question was answered before the run began
			c.RemoveLabels = []string{l.NeedsInfo}
		}
	default:
		c.RemoveLabels = []string{l.NeedsHuman, l.NeedsInfo}
		if v.Outcome.UsesAttempt() && l.Failed != "" {
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

// Own returns the part of a change that ralph itself may make at the end of a run: it sets only ralph's own labels and reopens
// nothing. require has the labels of issues to work; merges means that runs may merge.
func Own(l tracker.StateLabels, c tracker.Change, require []string, merges bool) tracker.Change {
	sets := []string{l.NeedsHuman, l.NeedsInfo, l.InReview, l.Failed}
	takes := append(append(slices.Clone(sets), l.Claimed), require...)
	return tracker.Change{AddLabels: intersect(c.AddLabels, sets), RemoveLabels: intersect(c.RemoveLabels, takes), Close: c.Close && merges}
}

// intersect returns those of the labels that are in the list.
func intersect(labels, list []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return label == "" || !slices.Contains(list, label) })
}

// StillFit returns a function that returns why an issue that is being worked no longer qualifies. The issue of a follow-up has no
// pick-up label. The label needs-human ends the run only if it was set after the run's start.
func StillFit(l tracker.StateLabels, exclude []string, r journal.Record) func(tracker.Issue) tracker.Unfit {
	return func(i tracker.Issue) tracker.Unfit {
		switch {
		case i.Open && i.HasLabel(l.NeedsHuman) && !r.HandedOver:
			return tracker.Unfit{Code: tracker.UnfitHandedOver, Detail: l.NeedsHuman}
		case r.FollowUp == "" && !r.Settings.Attended:
			return i.Unfit(r.Settings.Require, exclude)
		case !i.Open:
			return tracker.Unfit{Code: tracker.UnfitClosed}
		}
		if r.Settings.Attended { // a person has decided
			return tracker.Unfit{}
		}
		return i.Excluded(exclude)
	}
}

// Unfit returns the reason in the issue itself why it is not worked; nil: there is none.
func Unfit(l tracker.StateLabels, require, exclude []string, i tracker.Issue) *journal.Skip {
	why := i.Unfit(require, exclude)
	switch {
	case why.Code == "":
		return nil
	case i.HasLabel(l.InReview) && why.Code == tracker.UnfitLacks && why.Detail == require[0]:
		return &journal.Skip{Code: journal.SkipReview, Detail: l.InReview}
	}
	return &journal.Skip{Code: journal.SkipUnfit, Unfit: why}
}
