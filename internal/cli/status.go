package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool"
)

func newStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Say what is being worked, and how the latest runs ended",
		Example: "  ralph status\n  ralph status --json",
		GroupID: groupLook, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatus(cmd, a) },
	}
	a.addJSON(cmd)
	a.bind(cmd, "tracker", "local.dir", "remote", "state-dir")
	return cmd
}

// runState is where a run stands, as people see it.
type runState struct {
	pool.Record
	State string `json:"state"` // "running", "died", "unfinished" or the outcome
}

func stateOf(r pool.Record) runState {
	switch {
	case !r.Ended.IsZero():
		return runState{r, string(r.Verdict.Outcome)}
	case proc.Alive(r.PID, r.Process):
		return runState{r, "running"}
	case r.PID == 0: // given back, see pool
		return runState{r, "unfinished"}
	}
	return runState{r, "died"}
}

func runStatus(cmd *cobra.Command, a *app) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	open, err := p.journal.Open(cmd.Context())
	if err != nil {
		return err
	}
	last, err := p.journal.Last(cmd.Context())
	if err != nil {
		return err
	}
	states := []runState{}
	for _, r := range open {
		states = append(states, stateOf(r))
		delete(last, r.Key)
	}
	for _, r := range last {
		states = append(states, stateOf(r))
	}
	slices.SortStableFunc(states, func(x, y runState) int {
		if xo, yo := x.Ended.IsZero(), y.Ended.IsZero(); xo != yo {
			if xo {
				return -1
			}
			return 1
		}
		return cmp.Or(y.Started.Compare(x.Started), cmp.Compare(x.Key, y.Key))
	})
	if a.json {
		return a.ui.json(states)
	}
	if len(states) == 0 {
		a.ui.printf("No run yet. `ralph work --dry-run` says what would be worked.\n")
		return nil
	}
	rows := [][]string{{"ISSUE", "STATE", "ATTEMPT", "COMMITS", "BRANCH", "STARTED", "TOOK", "TITLE"}}
	name := p.names(cmd.Context())
	for _, s := range states {
		row := s.row()
		row[0] = name(s.Key)
		rows = append(rows, row)
	}
	a.ui.table(rows)
	return nil
}

func (s runState) row() []string {
	took := age(time.Since(s.Started))
	state := s.State
	switch {
	case !s.Ended.IsZero():
		took = age(s.Ended.Sub(s.Started))
	case state == "running":
		state = fmt.Sprintf("running (%s)", s.Step)
	case state == "unfinished":
		state, took = fmt.Sprintf("%s, not %s yet (the next sweep does it)", s.Verdict.Outcome, undone(s.Step)), "-"
	default:
		state, took = "died (the next sweep recovers it)", "-"
	}
	return []string{s.Key, state, fmt.Sprint(s.Attempt), fmt.Sprint(s.Verdict.Commits), s.Branch,
		s.Started.Local().Format(time.DateTime), took, s.Title}
}

// undone is what a run that was left at the step has still to be.
func undone(s pool.Step) string {
	if s == pool.StepPublish {
		return "published"
	}
	return "reported"
}
