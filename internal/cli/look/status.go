// Package look has the commands that show runs and issues: `ralph status`, `show`, `logs`, `cost` and `prompt`. Other commands use
// its wording of events and outcomes.
package look

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree/span"
)

// NewStatus returns `ralph status`.
func NewStatus(a *compose.App) *cobra.Command {
	var o fleetdb.Member
	var all bool
	cmd := &cobra.Command{
		Use: "status [KEY]", Short: "Show current runs, and how the latest ones ended",
		Long: "Show what is being worked on this host, and how the latest runs ended. With KEY: the state of this issue.\n\n" +
			"Current runs come first, then issues that need a person, failures, branches that wait for a merge, and issues that\n" +
			"need nobody: merged, closed or superseded ones. The end of a long list is summed up; --all and --json print all of it.\n\n" +
			"With the database of a fleet, the totals of --json cover all its machines.",
		Example:     "  ralph status\n  ralph status --json\n  ralph status fix-login",
		Annotations: compose.Marks(compose.Looks, compose.Reads),
		GroupID:     compose.GroupLook, Args: exit.AtMostOne("KEY"), ValidArgsFunction: a.CompleteWorked,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			if listed, ok := config.Served(a.Host.Env, a.Choices(), p.Top); ok && listed.Otherwise(p.Backlog.Name()) != "" {
				a.UI.Warn(listed.Otherwise(p.Backlog.Name()))
			}
			if len(args) > 0 {
				return statusOfIssue(ctx, a, p, args[0])
			}
			return status(ctx, a, p, o, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all issues")
	o.Flags(cmd)
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

// RunState is a run with the state that people see.
type RunState struct {
	journal.Record
	State string `json:"state"` // "running", "died", "unfinished", "merged", "closed" or the outcome
}

// MarkMerged sets the state of runs whose base contains their work to "merged", no matter how it got there. It skips runs whose
// commits or base git cannot find.
func MarkMerged(ctx context.Context, p *compose.Parts, states []RunState) {
	done := func(s RunState) bool {
		return !s.Ended.IsZero() && s.Commits > 0 && s.Tip != "" && s.Base != "" && s.Verdict.Outcome != journal.NoChange
	}
	tips := map[string][]string{} // by base; runs may have several
	for _, s := range states {
		if done(s) {
			tips[s.Base] = append(tips[s.Base], s.Tip)
		}
	}
	for name, list := range tips {
		base, err := p.Repo.Base(ctx, name)
		absorbed := map[string]bool{}
		if err == nil {
			absorbed, err = span.Absorbed(ctx, p.Repo.Git(), base.Commit, list)
		}
		if err != nil {
			p.Log.Debug("commits not compared with the base", "base", name, "error", err)
		}
		for i, s := range states {
			if done(s) && s.Base == name && absorbed[s.Tip] {
				states[i].State = "merged"
			}
		}
	}
}

// markClosed sets the state of ended runs to "closed" whose issue a person has closed or removed: nobody needs to look at them. Of
// a forge's issues it asks only for the first rows, because each is a request.
func markClosed(ctx context.Context, p *compose.Parts, states []RunState) {
	ctx, cancel := context.WithTimeout(ctx, waitsTime)
	defer cancel()
	if p.Backlog.Name() != local.Name {
		states = states[:min(len(states), rowsShown)]
	}
	var ask []*RunState
	for i := range states {
		if s := &states[i]; s.Kind == journal.KindIssue && !s.Ended.IsZero() && s.need() != needsNobody {
			ask = append(ask, s)
		}
	}
	_, _ = fanout.Map(ctx, ask, func(ctx context.Context, s *RunState) (none struct{}, _ error) {
		issue, err := p.Backlog.Get(ctx, s.Key)
		switch {
		case err == nil && !issue.Open, errors.Is(err, tracker.ErrNotFound) && p.Backlog.Name() == local.Name: // a forge hides issues, too
			s.State = "closed"
		case err != nil:
			p.Log.Debug("issue not read", "key", s.Key, "error", err)
		}
		if _, away := errors.AsType[*tracker.UnavailableError](err); away {
			return none, err // ends the others
		}
		return none, nil
	})
}

// StateOf returns the state of a recorded run.
func StateOf(r journal.Record) RunState {
	switch {
	case !r.Ended.IsZero():
		return RunState{r, string(r.Verdict.Outcome)}
	case proc.Alive(r.PID, r.Process):
		return RunState{r, "running"}
	case r.PID == 0: // its process gave the run up, see package pool
		return RunState{r, "unfinished"}
	}
	return RunState{r, "died"}
}

// latestStates returns the open runs, and the latest run of each other issue.
func latestStates(ctx context.Context, p *compose.Parts) ([]RunState, error) {
	open, err := p.Journal.Find(ctx, journal.Query{Open: true})
	if err != nil {
		return nil, err
	}
	last, err := p.Journal.Find(ctx, journal.Query{Latest: true})
	if err != nil {
		return nil, err
	}
	states := []RunState{}
	known := map[string]bool{}
	for _, r := range open {
		states = append(states, StateOf(r))
		known[r.Key] = true
	}
	for _, r := range last {
		if !known[r.Key] {
			states = append(states, StateOf(r))
		}
	}
	for i, s := range states {
		if s.movedNothing() {
			runs, err := p.Journal.Find(ctx, journal.Query{Key: s.Key, Kind: journal.KindIssue})
			if err != nil {
				return nil, err
			}
			states[i] = Standing(StatesOf(runs))
		}
	}
	return states, nil
}

func status(ctx context.Context, a *compose.App, p *compose.Parts, o fleetdb.Member, all bool) error {
	states, err := latestStates(ctx, p)
	if err != nil {
		return err
	}
	work, err := lastWork(ctx, p, states)
	if err != nil {
		return err
	}
	MarkMerged(ctx, p, states)
	slices.SortStableFunc(states, byNeed)
	markClosed(ctx, p, states)
	slices.SortStableFunc(states, byNeed)
	parked, err := Parked(ctx, a, p)
	if err != nil {
		return err
	}
	slow, err := parking.ReadSlow(filepath.Join(p.State, "slow"), time.Now())
	if err != nil {
		return err
	}
	limits, err := capStates(ctx, p, time.Now())
	if err != nil {
		return err
	}
	var waits []backlog.Skipped
	on := func(s RunState) bool { return s.State == "running" }
	if p.MaxOpenRequests > 0 || slices.ContainsFunc(states, on) { // otherwise no issue can wait, and the tracker need not be asked
		waits = waiting(ctx, a, p)
	}
	if a.JSON {
		sums, err := totalsOf(ctx, a, p, o, states, time.Now())
		if err != nil {
			return err
		}
		return a.UI.JSON(StatusData{
			Runs:    states,
			Caps:    limits,
			Parked:  append([]journal.Parked{}, parked...),
			Slow:    slowData(slow, time.Now()),
			Waits:   Skips(waits),
			Retries: retryQueue(states, time.Now()),
			Totals:  sums,
		})
	}
	if len(states) == 0 {
		a.UI.Printf("No run yet. `ralph work --dry-run` shows what would be worked.\n")
		return nil
	}
	name := p.Names(ctx)
	printStates(a, states, work, name, all)
	printLeft(a, states)
	PrintParked(a, parked)
	for _, s := range slow {
		a.UI.Printf("Agent %s: its model service refuses requests, so ralph now works at most %d issues at once instead of %d.\n",
			screen.CleanLine(s.Agent), s.Allowed(time.Now()), s.Most)
	}
	printWaits(a, waits, name)
	printCaps(a, limits)
	return nil
}

// StatusData is the output of `ralph status --json`. Fields are only ever added.
type StatusData struct {
	Runs   []RunState       `json:"runs"`
	Caps   []capState       `json:"caps"`
	Parked []journal.Parked `json:"parked"`
	Slow   []slowAgent      `json:"slow"`
	Waits  []SkipData       `json:"waits"` // for other issues, or for merges of requests
	// Retries lists issues that wait for another attempt, the next first.
	Retries []issueRetry `json:"retries"`
	Totals  totals       `json:"totals"`
}

// printLeft says which commands finish the runs that were left.
func printLeft(a *compose.App, states []RunState) {
	some := false
	for _, s := range states {
		switch {
		case s.LeftMerge():
			a.UI.Printf("`ralph merge %s` finishes its merge.\n", s.Key)
		case s.Left():
			some = true
		}
	}
	if some {
		a.UI.Printf("The next `ralph work` finishes the runs that died or are unfinished.\n")
	}
}

// Left reports that the run has not ended, and no process works on it.
func (s RunState) Left() bool { return s.State == "died" || s.State == "unfinished" }

// LeftMerge reports that a merge by a person was left.
func (s RunState) LeftMerge() bool { return s.Left() && s.Settings.Attended }

// movedNothing reports an interrupted merge by a person: it has not changed where the issue stands.
func (s RunState) movedNothing() bool {
	return s.Settings.Attended && !s.Ended.IsZero() && s.Verdict.Outcome == journal.Interrupted
}

// StatesOf returns the states of runs.
func StatesOf(runs []journal.Record) []RunState {
	states := make([]RunState, len(runs))
	for i, r := range runs {
		states[i] = StateOf(r)
	}
	return states
}

// Standing returns the run that determines where an issue stands. runs are all its runs, oldest first, at least one.
func Standing(runs []RunState) RunState {
	for _, s := range slices.Backward(runs) {
		if !s.movedNothing() {
			return s
		}
	}
	return runs[len(runs)-1]
}

// lastWork returns the latest agent's run, by key, of issues whose latest run is a merge by a person.
func lastWork(ctx context.Context, p *compose.Parts, states []RunState) (map[string]journal.Record, error) {
	var keys []string
	for _, s := range states {
		if s.Settings.Attended && !s.Ended.IsZero() {
			keys = append(keys, s.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	runs, err := p.Journal.Find(ctx, journal.Query{Keys: keys, Kind: journal.KindIssue})
	if err != nil {
		return nil, err
	}
	work := map[string]journal.Record{}
	for _, r := range runs {
		if !r.Settings.Attended && !r.Ended.IsZero() {
			work[r.Key] = r
		}
	}
	return work, nil
}
