package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

const mergeLong = `Merge what is on an issue's branch into the base branch: rebase it, run the gate on a clean checkout, move the base
branch (and your checkout, if it is clean), and close the issue. It is a run without an agent, under the issue's claim: the policy,
the gate and the canary are as for every run. If the gate has passed on the same commit and base within a day, it is not run again.
Changes to tests and other checks are no obstacle: you have decided.`

func newMergeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "merge KEY", Short: "Check an issue's branch once more, merge it, and close the issue", Long: mergeLong,
		Example: "  ralph diff fix-login\n  ralph merge fix-login", GroupID: groupWork,
	}
	a.onIssue(cmd, func(ctx context.Context, p *parts, issue tracker.Issue) error { return runMerge(ctx, a, p, issue) })
	a.bind(cmd, mergeKeys()...)
	return cmd
}

func runMerge(ctx context.Context, a *app, p *parts, issue tracker.Issue) error {
	if err := p.repo.Settled(ctx); err != nil { // publishing would fail, and leave the run to the next sweep
		return err
	}
	c, err := a.poolConfig(ctx, p)
	if err != nil {
		return err
	}
	base, err := p.base(ctx)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(base.Ref, "refs/heads/") {
		return usagef("a merge needs a local branch as base, but %s is not one; set --base BRANCH", base.Name)
	}
	if err := c.Run.Sandboxes.Check(ctx); err != nil {
		return noSandbox(ctx, c.Run.Sandboxes.Name(), err)
	}
	view := &workView{ui: a.ui, started: time.Now(), name: p.names(ctx)}
	c.Observe, c.Run.Emit = view.event, a.host.Observe
	worker, err := pool.NewWorker(c)
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	stop := context.AfterFunc(a.hard, worker.Kill)
	defer stop()
	r, err := worker.Merge(ctx, issue.Key)
	switch v := r.Record.Verdict; {
	case isAway(errors.Join(err, r.Unavailable)):
		return &exitError{status: exitParked, err: cmp.Or(err, r.Unavailable)}
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errInterrupted
	case r.Skip != nil && len(r.Finished) == 0:
		return &exitError{status: exitIncomplete, err: fmt.Errorf("%s is not merged: %s", issue.Key, report.Skip(issue.Key, *r.Skip))}
	case r.Skip != nil: // an earlier run was left on its way
		return a.merged(issue.Key, r.Finished[len(r.Finished)-1])
	case r.Unavailable != nil && v.Outcome.Unavailable():
		return &exitError{status: exitParked, err: r.Unavailable}
	}
	return a.merged(issue.Key, r.Record)
}

// merged says how a merge has ended.
func (a *app) merged(key string, r journal.Record) error {
	if !r.Merges(r.Verdict) || r.Published == "" {
		return &exitError{
			status: exitIncomplete, hint: "`ralph show " + key + "` says what to type next",
			err: fmt.Errorf("%s is not merged: %s: %s", key, outcomeOf(r), report.Reason(r.Verdict.Reason)),
		}
	}
	a.ui.printf("%s: %s, and the issue is closed\n", cleanLine(key), cleanLine(r.Published))
	return nil
}
