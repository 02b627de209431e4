package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/worktree"
)

// jobVerdict is the exit status of a run; unavailable is why it could not work, if nothing could.
func jobVerdict(r journal.Record, unavailable error) error {
	why := errors.New(withFix(report.Reason(r.Verdict.Reason)))
	switch r.Verdict.Outcome {
	case journal.Succeeded, journal.NoChange:
		return nil
	case journal.Interrupted:
		return errInterrupted
	case journal.AgentUnavailable, journal.EnvironmentUnavailable:
		return &exitError{status: exitParked, err: why, hint: sandboxFix(unavailable)}
	}
	if r.Facts.End == loop.EndPrompt {
		return &exitError{status: exitUsage, err: why}
	}
	if r.Verdict.Reason.Code == "" {
		why = fmt.Errorf("the run ended: %s", r.Verdict.Outcome)
	}
	hint := ""
	if r.Facts.Open != nil && r.Facts.Open.Kind == journal.FaultDirty {
		hint = "a run saved them as refs/ralph/wip/" + r.Key + "; work on with --allow-dirty, or remove the worktree with: ralph clean " + r.Key
	}
	if r.Verdict.Reason.Code == journal.ReasonConflict {
		hint = fmt.Sprintf("the work is kept on %s; get it with: %s", r.Branch, report.GitCommand("merge", r.Branch))
	}
	return &exitError{status: exitIncomplete, err: why, hint: hint}
}

// printJob prints what the run came to.
func (a *app) printJob(res run.Result, f runFlags) error {
	if a.json {
		return a.ui.json(jobJSON(res))
	}
	r := res.Record
	row := func(name, format string, args ...any) {
		if a.quiet && f.outputTag != "" { // only the output was asked for
			return
		}
		a.ui.printf("%-18s %s\n", name+":", cleanLine(fmt.Sprintf(format, args...)))
	}
	row("Iterations", "%d of %d", len(r.Facts.Iterations), f.iterations)
	signal := ""
	if n := len(r.Facts.Iterations); n > 0 {
		signal = r.Facts.Iterations[n-1].Signal
	}
	row("Completion signal", "%s", cmp.Or(signal, "(none)"))
	for _, c := range r.Facts.Gate {
		state := "passed"
		if !c.Passed() {
			state = fmt.Sprintf("failed with exit status %d", c.ExitCode)
		}
		row("Gate", "%s: %s", c.Command, state)
	}
	branch := r.Branch
	if res.Merged != "" {
		branch = r.Base // the scratch branch is gone
	}
	row("Branch", "%s", branch)
	var shas []string
	for _, c := range res.Commits {
		shas = append(shas, shortSHA(c.SHA))
	}
	row("Commits", "%s", cmp.Or(strings.Join(shas, ", "), "(none)"))
	if res.Merged != "" {
		row("Merged", "into %s as %s", r.Base, shortSHA(res.Merged))
	}
	if r.WIP != "" {
		row("Uncommitted", "saved as %s", shortSHA(r.WIP))
	}
	if r.Tree != "" {
		row("Worktree", "%s", r.Tree)
	}
	u := r.Facts.Usage
	if u.Input+u.Output > 0 {
		row("Tokens", "in %d, out %d, cache read %d, cache written %d", u.Input, u.Output, u.CacheRead, u.CacheWrite)
	} else {
		row("Tokens", "not reported")
	}
	if u.CostUSD > 0 {
		row("Cost", "%s", usd(u.CostUSD))
	}
	row("Logs", "%s", r.Dir)
	for _, w := range r.Warnings {
		a.ui.warn(raising(w))
	}
	if res.Output != nil {
		a.ui.printf("%s\n", clean(cmp.Or(string(res.Output.JSON), res.Output.Raw)))
	}
	return nil
}

// noteRecovered says what was imported of a job that had died.
func (a *app) noteRecovered(r journal.Record) {
	kept := keptWork(r.Commits, r.Branch, r.WIP)
	if kept == "" {
		kept = "there was no work to keep"
	} else {
		kept += "; " + dropWith(r.Key)
	}
	a.ui.note("ralph: run %s had died; %s", r.ID, cleanLine(kept))
}

// recoverJobs imports the work of jobs that died, and ends what they left running.
func (a *app) recoverJobs(ctx context.Context, p *parts) error {
	open, err := p.journal.Find(ctx, journal.Query{Open: true})
	if err != nil || !slices.ContainsFunc(open, func(r journal.Record) bool { return r.Kind != journal.KindIssue }) {
		return err
	}
	local := *p
	options := p.repository()
	options.Log = p.log
	if local.repo, err = worktree.Open(ctx, p.top, options); err != nil {
		return err
	}
	c, err := a.runConfig(ctx, &local)
	if err != nil {
		return err
	}
	return job.Recover(ctx, c, a.noteRecovered)
}
