package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/tracker"
)

// backAt returns when the first of the agents is expected back. It is zero if one is available, or if all wait for a person.
func backAt(all []agents.Choice, parked []journal.Parked) (back time.Time) {
	for _, p := range parking.Waits(all, parked) {
		if at := p.Until; back.IsZero() || !at.IsZero() && at.Before(back) {
			back = at
		}
	}
	return back
}

// stillParked reports that a sweep did nothing because an earlier one had found its agents unavailable, and had reported it.
func stillParked(s pool.Summary) bool {
	agent, ok := errors.AsType[*run.UnavailableError](s.Unavailable)
	return ok && agent.Key != "" && len(s.Runs) == 0
}

// plan prints what a sweep would do.
func (s *sweep) plan(ctx context.Context) error {
	a, view, c := s.App, s.view, s.config.Run
	plan, err := s.workers.Preview(ctx, s.keys...)
	if err != nil {
		return exit.Classified(s.parts.Nearest(ctx, err))
	}
	parked, err := s.workers.Parked(ctx)
	if err != nil {
		return err
	}
	expected, err := expected(ctx, c, len(plan.Work)+len(plan.WaitingForRuns)+len(plan.FollowUp))
	if err != nil {
		return err
	}
	if a.JSON {
		d := planJSON(plan, parked)
		d.Forecast = expected
		return cmp.Or(a.UI.JSON(d), unread(plan.Problems))
	}
	const work = "Would work, in this order:\n"
	order := work
	if back := backAt(c.Agents().Choices(), parked); !back.IsZero() && len(s.keys) == 0 {
		a.UI.Printf("Nothing would be worked until %s.\n", back.Local().Format(time.DateTime))
		look.PrintParked(a, parked)
		a.UI.Printf("`ralph work KEY` works an issue at once.\n\n")
		order, parked = "Would work then, in this order:\n", nil
	}
	switch {
	case len(plan.Work) == 0 && order != work: // the line was printed above
	case len(plan.Work) == 0:
		a.UI.Printf("Nothing to work.\n")
	default:
		a.UI.Printf("%s", order)
		issueTable(a, plan.Work, view, true)
	}
	leftFor(a, "Would work after others:", "WAITS", plan.WaitingForRuns, view)
	leftFor(a, "Would work later than their order:", "BEHIND OTHERS", plan.Postponed, view)
	if len(plan.Merged) > 0 {
		a.UI.Printf("\nWould close first, because their branches are merged:\n")
		issueTable(a, plan.Merged, view, false)
	}
	skipped := slices.Clone(plan.Skipped)
	for _, pr := range plan.Problems {
		if pr.Kept {
			a.UI.Warn(pr.Error())
			continue
		}
		file, _, _ := strings.Cut(filepath.Base(pr.Where), ":")
		skipped = append(skipped, backlog.Skipped{
			Issue: tracker.Issue{Key: strings.TrimSuffix(file, ".md")}, Skip: journal.Skip{Code: journal.SkipBroken, Detail: pr.Error()},
		})
	}
	leftFor(a, "Would skip:", "WHY NOT", skipped, view)
	look.PrintOpen(a, plan.Skipped)
	for _, problem := range NotToCopy(s.parts) {
		a.UI.Warn("copy: " + problem + "; " + FixCopy)
	}
	warnCycles(a, plan.Cycles, view)
	look.PrintParked(a, parked)
	if expected != nil {
		a.UI.Printf("\n%s\n", expected)
	}
	return unread(plan.Problems)
}

// unread returns the error of a sweep in which issues could not be read.
func unread(problems []tracker.Problem) error {
	if text := brokenText(problems); text != "" {
		return exit.Incompletef("%s", text)
	}
	return nil
}

// FixCopy is the fix for NotToCopy.
const FixCopy = "create it, or remove it from copy"

// NotToCopy names files of the setting copy that do not exist: without them no run can begin.
func NotToCopy(p *compose.Parts) (problems []string) {
	for _, path := range p.Copy {
		if _, err := os.Lstat(filepath.Join(p.Top, path)); errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Sprintf("%q is not in %s", path, p.Top))
		}
	}
	return problems
}

// issueTable prints issues with their titles, and numbers if asked.
func issueTable(a *compose.App, list []tracker.Issue, view *progress.View, numbered bool) {
	rows := [][]string{{"#", "ISSUE", "TITLE"}}
	for i, issue := range list {
		rows = append(rows, []string{fmt.Sprint(i + 1), view.Name(issue.Key), issue.Title})
	}
	if !numbered {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	a.UI.Table(rows)
}

// leftFor prints issues that are not worked now, with the reasons.
func leftFor(a *compose.App, title, why string, list []backlog.Skipped, view *progress.View) {
	rows := [][]string{{"ISSUE", why}}
	for _, s := range list {
		rows = append(rows, []string{view.Name(s.Issue.Key), look.WhyNot(s, view.Name)})
	}
	if len(list) > 0 {
		a.UI.Printf("\n%s\n", title)
		a.UI.Table(rows)
	}
}

// warnCycles warns of issues that block each other.
func warnCycles(a *compose.App, list []tracker.Cycle, view *progress.View) {
	for _, c := range list {
		var names []string
		for _, key := range append(c, c[0]) {
			names = append(names, view.Name(key))
		}
		a.UI.Warn("issues that block each other, so that none can start: " + strings.Join(names, " waits for "))
	}
}
