package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
)

// jobLog tells what a run without a tracker is doing, on the terminal or in --log-file.
type jobLog struct {
	ui      *printer
	secrets *redact.Secrets
	name    string
	file    *os.File // --log-file; nil: the terminal
}

// jobLog opens the log of one run.
func (a *app) jobLog(f runFlags, secrets *redact.Secrets) (*jobLog, error) {
	l := &jobLog{ui: a.ui, secrets: secrets, name: f.name}
	if f.logFile == "" {
		return l, nil
	}
	var err error
	l.file, err = os.OpenFile(a.path(f.logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--log-file: %v", err)
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
	text := l.secrets.Mask(clean(fmt.Sprintf(format, args...)))
	if l.name != "" {
		text = "[" + cleanLine(l.name) + "] " + text
	}
	if l.file != nil {
		_, _ = fmt.Fprintln(l.file, text) // a full disk must not stop the agent
		return
	}
	l.ui.note("%s", text)
}

func (l *jobLog) event(e loop.Event) {
	switch e.Kind {
	case loop.EventIteration, loop.EventWarning:
		l.print("%s", e.Text)
	case loop.EventSignal:
		l.print("completion signal seen: %s", e.Text)
	case loop.EventCommits:
		l.print("%s", plural(e.New, "new commit"))
	case loop.EventSetup, loop.EventGate, loop.EventAfter:
		if e.Check != nil {
			l.print("%s %s: exit status %d", e.Kind, e.Check.Command, e.Check.ExitCode)
		}
	case loop.EventAgent:
		l.agent(e.Agent)
	case loop.EventEnded:
		if e.Result != nil && e.Result.Failure != nil {
			l.print("agent failed: %s", e.Result.Failure)
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
	case e.Kind == agents.EventRetry, e.Kind == agents.EventNotice && l.ui.verbose:
		l.print("  %s: %s", e.Kind, e.Text)
	}
}

// jobData is what `ralph run --json` prints. Fields are only ever added.
type jobData struct {
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

func jobJSON(res run.Result) jobData {
	r := res.Record
	d := jobData{Record: r, Commits: []commitData{}, Merged: res.Merged}
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
