package work

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// summary prints the result of a sweep. remote is where branches were pushed; named means that the user named the issues.
func summary(a *compose.App, s pool.Summary, v *progress.View, remote string, named bool) error {
	if a.JSON {
		return a.UI.JSON(summaryJSON(s))
	}
	if !a.UI.Quiet {
		defer warnCycles(a, s.Cycles, v)
	}
	if named {
		for _, left := range s.Skipped {
			a.UI.Warn(v.Name(left.Issue.Key) + " is skipped: " + whySkipped(left, v.Name))
		}
		s.Skipped = nil
	}
	if !a.UI.Quiet && s.Unavailable == nil {
		defer look.PrintParked(a, s.Parked)
	}
	if !a.UI.Quiet {
		defer look.PrintOpen(a, s.Skipped)
	}
	if len(s.Runs) == 0 {
		if a.UI.Quiet { // cron would send mail for each line
			return nil
		}
		a.UI.Printf("No issue was worked%s.\n", because(s))
		return nil
	}
	if s.Parallel > 0 && s.Parallel < min(s.MaxParallel, len(s.Runs)) {
		defer a.UI.Printf("Model services refused requests, so at the end at most %s ran at once, not %d.\n",
			screen.Plural(s.Parallel, "issue"), s.MaxParallel)
	}
	rows := [][]string{{"ISSUE", "OUTCOME", "COMMITS", "TOOK", "COST"}}
	var sum look.CostGroup
	for _, r := range s.Runs {
		took := "unfinished" // the next sweep finishes it
		if !r.Ended.IsZero() {
			took = screen.Age(r.DurationUntil(r.Ended))
		}
		rows = append(rows, []string{v.Name(r.Key), look.OutcomeOf(r), fmt.Sprint(r.Commits), took, look.CostText(r.Facts.Usage)})
		sum.Add(r)
	}
	a.UI.Table(screen.WithoutUnknown(rows, "COST"))
	what := screen.Plural(len(s.Runs), "issue")
	if countIf(s.Runs, begun) == 0 {
		what = "No issue was"
	}
	a.UI.Printf("%s worked in %s: %s%s.\n",
		what, screen.Age(time.Since(v.Started)), tally(s), sum.Sentence())
	if list := pushed(s.Runs, remote); len(list) > 0 {
		a.UI.Printf("Pushed: %s.\n", strings.Join(list, ", "))
	}
	if n := countIf(s.Runs, look.Ungated); n > 0 {
		a.UI.Printf("No gate checked %s; %s.\n", screen.Plural(n, "issue"), hint.GateFix)
	}
	noteNext(a, s.Runs)
	return nil
}

// begun reports whether the run started an agent, or needed none.
func begun(r journal.Record) bool {
	return len(r.Facts.Iterations) > 0 || !r.Verdict.Outcome.Unavailable()
}

// whySkipped says why an issue is skipped, as a sentence.
func whySkipped(s backlog.Skipped, name func(key string) string) string {
	why, unfit := look.WhyNot(s, name), s.Skip.Unfit
	switch s.Skip.Code {
	case journal.SkipReview, journal.SkipGone:
		return "the issue is " + why
	case journal.SkipUnfit:
		return strings.Replace(why, unfit.String(), unfit.Sentence(), 1)
	}
	return why
}

// noteNext prints the next commands for branches to look at.
func noteNext(a *compose.App, runs []journal.Record) {
	left := slices.DeleteFunc(slices.Clone(runs), func(r journal.Record) bool {
		return r.Verdict.Outcome != journal.Succeeded || r.Settings.Publish != journal.PublishBranch
	})
	edited := countIf(left, func(r journal.Record) bool { return r.Verdict.Reason.Code == journal.ReasonEdited })
	switch key := onlyKey(left); {
	case len(left) == 0:
	case len(left) == edited: // a merge without the flag refuses them
		a.UI.Note("To look: ralph diff %s; to merge: ralph merge --edited %[1]s", key)
	case len(left) == 1:
		a.UI.Note("To look: ralph diff %s; to merge: ralph merge %[1]s", key)
	default:
		a.UI.Note("To look: ralph diff %s; to merge: ralph merge %[1]s, or ralph merge --all", key)
	}
}

// because says briefly why nothing was worked, unless an error does.
func because(s pool.Summary) string {
	if len(s.Skipped) == 0 || s.Unavailable != nil {
		return ""
	}
	if label := nearestLabel(s.Skipped); label != "" {
		return ": no open issue has the label, but some have " + label
	}
	return fmt.Sprintf(": %s skipped (`ralph work --dry-run` says why)", screen.Plural(len(s.Skipped), "open issue"))
}

// nearestLabel returns a label of the issues that is similar to the pick-up label, if all of them lack that.
func nearestLabel(left []backlog.Skipped) string {
	var want string
	var have []string
	for _, l := range left {
		if l.Skip.Code == journal.SkipReview {
			continue
		}
		if l.Skip.Unfit.Code != tracker.UnfitLacks {
			return ""
		}
		want, have = l.Skip.Unfit.Detail, append(have, l.Issue.Labels...)
	}
	return screen.CleanLine(nearest.To(want, have))
}

func tally(s pool.Summary) string {
	count := map[string]int{}
	var order []string
	for _, r := range s.Runs {
		o := look.OutcomeOf(r)
		if count[o]++; count[o] == 1 {
			order = append(order, o)
		}
	}
	var parts []string
	for _, o := range order {
		parts = append(parts, fmt.Sprintf("%d %s", count[o], o))
	}
	return strings.Join(parts, ", ")
}

// pushed lists the branches that runs have pushed without a request, as REMOTE/BRANCH.
func pushed(runs []journal.Record, remote string) (list []string) {
	for _, r := range runs {
		if r.Published != "" && r.Settings.Publish == journal.PublishBranch {
			list = append(list, screen.CleanLine(remote+"/"+r.Branch))
		}
	}
	return list
}
