package work

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// jobVerdict returns the error that decides the exit status of a run. unavailable is why nothing could work.
func jobVerdict(r journal.Record, unavailable error) error {
	why := errors.New(report.Reason(r.Verdict.Reason))
	switch r.Verdict.Outcome {
	case journal.Succeeded, journal.NoChange:
		return nil
	case journal.Interrupted:
		return exit.ErrInterrupted
	case journal.AgentUnavailable, journal.EnvironmentUnavailable:
		return &exit.Error{Status: exit.Parked, Err: why, Hint: cmp.Or(hint.Sandbox(unavailable), hint.Failure(r.Facts.Failure))}
	}
	if r.Facts.End == loop.EndPrompt {
		return &exit.Error{Status: exit.Usage, Err: why}
	}
	if r.Verdict.Reason.Code == "" {
		why = fmt.Errorf("the run ended: %s", r.Verdict.Outcome)
	}
	next := hint.Failure(r.Facts.Failure)
	if r.Facts.Open != nil && r.Facts.Open.Kind == journal.FaultDirty {
		next = "a run saved them as refs/ralph/wip/" + r.Key + "; continue with --allow-dirty, " +
			"or remove the worktree with: ralph clean " + r.Key
	}
	if r.Verdict.Reason.Code == journal.ReasonConflict {
		next = fmt.Sprintf("the work is kept on %s; get it with: %s", r.Branch, report.GitCommand("merge", r.Branch))
	}
	return &exit.Error{Status: exit.Incomplete, Err: why, Hint: next}
}

// printJob prints the result of a run.
func printJob(a *compose.App, res run.Result, f runFlags) error {
	if a.JSON {
		return a.UI.JSON(jobJSON(res))
	}
	r := res.Record
	row := func(name, format string, args ...any) {
		if a.UI.Quiet && f.outputTag != "" { // the user wants the output only
			return
		}
		a.UI.Printf("%-18s %s\n", name+":", screen.CleanLine(fmt.Sprintf(format, args...)))
	}
	row("Iterations", "%d of %d", len(r.Facts.Iterations), f.iterations)
	signal := ""
	if n := len(r.Facts.Iterations); n > 0 {
		signal = r.Facts.Iterations[n-1].Signal
	}
	row("Completion signal", "%s", cmp.Or(signal, "(none)"))
	for _, c := range r.Facts.Gate {
		row("Gate", "%s", look.CheckText(c))
	}
	branch := r.Branch
	if res.Merged != "" {
		branch = r.Base // the scratch branch is gone
	}
	row("Branch", "%s", branch)
	var shas []string
	for _, c := range res.Commits {
		shas = append(shas, screen.ShortSHA(c.SHA))
	}
	row("Commits", "%s", cmp.Or(strings.Join(shas, ", "), "(none)"))
	if res.Merged != "" {
		row("Merged", "into %s as %s", r.Base, screen.ShortSHA(res.Merged))
	}
	if r.WIP != "" {
		row("Uncommitted", "saved as %s", screen.ShortSHA(r.WIP))
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
		row("Cost", "%s", ledger.Spend{Usage: u})
	}
	row("Logs", "%s", r.Dir)
	for _, w := range r.Warnings {
		a.UI.Warn(hint.Raising(w))
	}
	if d := denied(r); d != "" {
		a.UI.Warn(d)
	}
	noteBranch(a, res, f)
	if res.Output != nil {
		a.UI.Printf("%s\n", screen.Clean(cmp.Or(string(res.Output.JSON), res.Output.Raw)))
	}
	return nil
}

// noteBranch prints the next commands for commits on a branch of their own.
func noteBranch(a *compose.App, res run.Result, f runFlags) {
	r := res.Record
	switch {
	case f.strategy != string(job.StrategyBranch) || len(res.Commits) == 0:
	case r.Verdict.Outcome == journal.Succeeded:
		a.UI.Note("%s", screen.CleanLine(fmt.Sprintf("To look: ralph diff %s; to merge: %s", git.Quote(r.Key), report.GitCommand("merge", r.Branch))))
	default:
		a.UI.Note("%s", screen.CleanLine("To look: ralph diff "+git.Quote(r.Key)))
	}
}

// denied says which permission the agent lacked in a run without commits, or "".
func denied(r journal.Record) string {
	n := len(r.Facts.Iterations)
	if n == 0 || r.Commits > 0 || len(r.Facts.Iterations[n-1].Denied) == 0 {
		return ""
	}
	d := r.Facts.Iterations[n-1].Denied[0]
	return fmt.Sprintf("the agent was not allowed to use %s (%s), and made no commit; "+
		"allow it with --skip-permissions or a --permission-mode, or choose a sandbox that isolates",
		d.Tool, d.Detail)
}

// RunData is the output of `ralph run --json`. Fields are only ever added.
type RunData struct {
	journal.Record
	Signal  string          `json:"completion_signal,omitempty"`
	Commits []span.Commit   `json:"commit_list"`
	Merged  string          `json:"merged,omitempty"` // the base's new commit
	Output  string          `json:"output,omitempty"` // the text between the tags
	Result  json.RawMessage `json:"result,omitempty"` // the same as JSON, if a schema was given
}

func jobJSON(res run.Result) RunData {
	r := res.Record
	d := RunData{Record: r, Commits: append([]span.Commit{}, res.Commits...), Merged: res.Merged}
	if n := len(r.Facts.Iterations); n > 0 {
		d.Signal = r.Facts.Iterations[n-1].Signal
	}
	if res.Output != nil {
		d.Output, d.Result = res.Output.Raw, res.Output.JSON
	}
	return d
}

// redactedResult returns a copy of the result without secrets in texts for people. In the agent's output it only replaces
// known values, because programs read it.
func redactedResult(res run.Result, s *redact.Secrets) run.Result {
	res.Record = report.Redacted(res.Record, s)
	res.Commits = slices.Clone(res.Commits)
	for i := range res.Commits {
		res.Commits[i].Subject = s.Clean(res.Commits[i].Subject)
	}
	if res.Output != nil {
		res.Output = &loop.OutputValue{Raw: s.Mask(res.Output.Raw), JSON: s.Finder().Replace(res.Output.JSON, redact.Value)}
	}
	return res
}
