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

// rowsShown is how many rows the table has, unless more runs are on or left.
const rowsShown = 20

// need says how much somebody wants to see the run: what is on or left first, then what a person has to look at, what is tried
// again, what awaits its merge, and what is over.
func (s RunState) need() int {
	switch {
	case s.Ended.IsZero():
		return 0
	case s.State == "merged", s.State == string(journal.Superseded):
		return 4
	case s.State == string(journal.Succeeded):
		return 3
	case s.Verdict.Final:
		return 1
	}
	return 2
}

// byNeed orders runs for people, of equal ones the latest first.
func byNeed(x, y RunState) int {
	return cmp.Or(cmp.Compare(x.need(), y.need()), y.Started.Compare(x.Started), cmp.Compare(x.Key, y.Key))
}

// printStates prints the table of runs, which are in the order of their need. Those that do not fit are counted.
func printStates(a *compose.App, states []RunState, work map[string]journal.Record, name func(key string) string, all bool) {
	rows := [][]string{{"ISSUE", "STATE", "ATTEMPT", "COMMITS", "STARTED", "TOOK", "COST", "TITLE"}}
	var more []string // states in their order
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

// row is a line of the table. What a merge by a person took and cost says nothing of the issue, so work has that.
func (s RunState) row(work journal.Record) []string {
	if !work.Ended.IsZero() {
		s.Started, s.Ended, s.Facts.Usage = work.Started, work.Ended, work.Facts.Usage
	}
	took := screen.Age(s.Took(time.Now()))
	state := s.State
	switch {
	case !s.Ended.IsZero():
		took = screen.Age(s.Took(s.Ended))
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

// undone is what a run that was left has still to be.
func undone(r journal.Record) string {
	switch {
	case r.Verdict.Outcome == "":
		return OutcomeOf(r)
	case r.Stage.Before(journal.StageReport):
		return fmt.Sprintf("%s, not published", r.Verdict.Outcome)
	}
	return fmt.Sprintf("%s, not reported", r.Verdict.Outcome)
}
