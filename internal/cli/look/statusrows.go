package look

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

// rowsShown is the number of rows after which ended runs are only counted.
const rowsShown = 20

// needsNobody is the sort key of runs that need nobody any more.
const needsNobody = 4

// need is the sort key of the list: open runs, then runs that a person has to look at, runs that are tried again, successes that
// await their merge, and the rest.
func (s RunState) need() int {
	switch {
	case s.Ended.IsZero():
		return 0
	case s.State == "merged", s.State == "closed", s.State == string(journal.Superseded):
		return needsNobody
	case s.State == string(journal.Succeeded):
		return 3
	case s.Verdict.Final:
		return 1
	}
	return 2
}

// byNeed sorts runs by need, then by start, latest first.
func byNeed(x, y RunState) int {
	return cmp.Or(cmp.Compare(x.need(), y.need()), y.Started.Compare(x.Started), cmp.Compare(x.Key, y.Key))
}

// printStates prints the table of runs, which are sorted by need, and counts those that do not fit.
func printStates(a *compose.App, states []RunState, work map[string]journal.Record, name func(key string) string, all bool) {
	rows := [][]string{{"ISSUE", "STATE", "ATTEMPT", "COMMITS", "STARTED", "TOOK", "COST", "TITLE"}}
	var more []string // states, in the order of the runs
	counts := map[string]int{}
	for i, s := range states {
		if !all && i >= rowsShown && !s.Ended.IsZero() {
			if counts[s.State]++; counts[s.State] == 1 {
				more = append(more, s.State)
			}
			continue
		}
		row := s.row(work[s.Key])
		row[0] = name(s.Key)
		rows = append(rows, row)
	}
	a.UI.Table(screen.WithoutUnknown(rows, "COST"))
	if len(more) == 0 {
		return
	}
	for i, state := range more {
		more[i] = fmt.Sprintf("%d %s", counts[state], state)
	}
	a.UI.Printf("%d more: %s (`ralph status --all` lists them).\n", len(states)-len(rows)+1, strings.Join(more, ", "))
}

// row returns the run's row. Time and cost of a merge by a person say nothing about the issue, so work replaces them.
func (s RunState) row(work journal.Record) []string {
	if !work.Ended.IsZero() {
		s.Started, s.Ended, s.Facts.Usage = work.Started, work.Ended, work.Facts.Usage
	}
	took := screen.Age(s.DurationUntil(time.Now()))
	state := s.State
	switch {
	case !s.Ended.IsZero():
		took = screen.Age(s.DurationUntil(s.Ended))
	case state == "running":
		_, short, _ := phase(s.Record)
		state = fmt.Sprintf("running (%s)", short)
	case state == "unfinished":
		state, took = undone(s.Record), "-"
	default:
		took = "-"
	}
	return []string{
		s.Key, state, fmt.Sprint(s.Attempt), fmt.Sprint(s.Commits), screen.Ago(s.Started, time.Now()), took,
		CostText(s.Facts.Usage), s.Title,
	}
}

// undone says what an unfinished run still lacks.
func undone(r journal.Record) string {
	switch {
	case r.Verdict.Outcome == "":
		return OutcomeOf(r)
	case r.Stage.Before(journal.StageReport):
		return fmt.Sprintf("%s, not published", r.Verdict.Outcome)
	}
	return fmt.Sprintf("%s, not reported", r.Verdict.Outcome)
}
