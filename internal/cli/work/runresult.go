package work

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
)

// jobVerdict is the exit status of a run; unavailable is why it could not work, if nothing could.
func jobVerdict(r journal.Record, unavailable error) error {
	why := errors.New(hint.WithAgent(report.Reason(r.Verdict.Reason)))
	switch r.Verdict.Outcome {
	case journal.Succeeded, journal.NoChange:
		return nil
	case journal.Interrupted:
		return exit.ErrInterrupted
	case journal.AgentUnavailable, journal.EnvironmentUnavailable:
		return &exit.Error{Status: exit.Parked, Err: why, Hint: hint.Sandbox(unavailable)}
	}
	if r.Facts.End == loop.EndPrompt {
		return &exit.Error{Status: exit.Usage, Err: why}
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
	return &exit.Error{Status: exit.Incomplete, Err: why, Hint: hint}
}

// printJob prints what the run came to.
func printJob(a *compose.App, res run.Result, f runFlags) error {
	if a.JSON {
		return a.UI.JSON(jobJSON(res))
	}
	r := res.Record
	row := func(name, format string, args ...any) {
		if a.Quiet && f.outputTag != "" { // only the output was asked for
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
	if res.Output != nil {
		a.UI.Printf("%s\n", screen.Clean(cmp.Or(string(res.Output.JSON), res.Output.Raw)))
	}
	return nil
}

// denied says what the agent was not allowed to do in a run without commits; empty: nothing.
func denied(r journal.Record) string {
	n := len(r.Facts.Iterations)
	if n == 0 || r.Commits > 0 || len(r.Facts.Iterations[n-1].Denied) == 0 {
		return ""
	}
	d := r.Facts.Iterations[n-1].Denied[0]
	return fmt.Sprintf("the agent may not use %s (%s), and there is no commit; allow it with --skip-permissions or a --permission-mode, or choose a sandbox that isolates",
		d.Tool, d.Detail)
}

// jobLog tells what a run without a tracker is doing, on the terminal or in --log-file.
type jobLog struct {
	ui      *screen.Printer
	secrets *redact.Secrets
	name    string
	file    *os.File // --log-file; nil: the terminal
}

// newJobLog opens the log of one run.
func newJobLog(a *compose.App, f runFlags, secrets *redact.Secrets) (*jobLog, error) {
	l := &jobLog{ui: a.UI, secrets: secrets, name: f.name}
	if f.logFile == "" {
		return l, nil
	}
	var err error
	l.file, err = os.OpenFile(a.Path(f.logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exit.Usagef("--log-file: %v", err)
	}
	l.print("run started at %s", time.Now().Format(time.RFC3339))
	return l, nil
}

func (l *jobLog) close() {
	if l.file != nil {
		_ = l.file.Close() // each line is written at once
	}
}

func (l *jobLog) print(format string, args ...any) {
	text := l.secrets.Mask(screen.Clean(fmt.Sprintf(format, args...)))
	if l.name != "" {
		text = "[" + screen.CleanLine(l.name) + "] " + text
	}
	if l.file != nil {
		_, _ = fmt.Fprintln(l.file, text) // a full disk must not stop the agent
		return
	}
	l.ui.Note("%s", text)
}

func (l *jobLog) event(e loop.Event) {
	switch e.Kind {
	case loop.EventIteration, loop.EventWarning:
		l.print("%s", e.Text)
	case loop.EventSignal:
		l.print("completion signal seen: %s", e.Text)
	case loop.EventCommits:
		l.print("%s", screen.Plural(e.New, "new commit"))
	case loop.EventSetup, loop.EventGate, loop.EventAfter:
		if e.Check != nil {
			l.print("%s %s: exit status %d", e.Kind, e.Check.Command, e.Check.ExitCode)
		}
	case loop.EventAgent:
		l.agent(e.Agent)
	case loop.EventEnded:
		if e.Result != nil && e.Result.Failure != nil {
			l.print("agent failed: %s", report.Failure(e.Result.Failure))
			if e.Result.Stderr != "" {
				l.print("the end of its standard error:\n%s", e.Result.Stderr)
			}
		}
	}
}

func (l *jobLog) agent(e *agents.Event) {
	switch {
	case e == nil:
	case e.Kind == agents.EventMessage && e.Text != "":
		l.print("%s", e.Text)
	case e.Kind == agents.EventTool:
		l.print("  %s %s", e.Name, e.Detail)
	case e.Kind == agents.EventDenied:
		l.print("  permission denied: %s %s", e.Name, e.Detail)
	case e.Kind == agents.EventRetry, e.Kind == agents.EventNotice && l.ui.Verbose:
		l.print("  %s: %s", e.Kind, e.Text)
	}
}

// RunData is what `ralph run --json` prints. Fields are only ever added.
type RunData struct {
	journal.Record
	Signal  string          `json:"completion_signal,omitempty"`
	Commits []commitData    `json:"commit_list"`
	Merged  string          `json:"merged,omitempty"` // the commit that the base is at now
	Output  string          `json:"output,omitempty"` // the text between the tags
	Result  json.RawMessage `json:"result,omitempty"` // the same as JSON, when a schema was given
}

type commitData struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
}

func jobJSON(res run.Result) RunData {
	r := res.Record
	d := RunData{Record: r, Commits: []commitData{}, Merged: res.Merged}
	if n := len(r.Facts.Iterations); n > 0 {
		d.Signal = r.Facts.Iterations[n-1].Signal
	}
	if res.Output != nil {
		d.Output, d.Result = res.Output.Raw, res.Output.JSON
	}
	for _, c := range res.Commits {
		d.Commits = append(d.Commits, commitData{c.SHA, c.Subject})
	}
	return d
}

// redactedResult returns a copy of the result in which no text for people carries a secret. The agent's output stays what
// it is but for known values, because programs read it.
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
