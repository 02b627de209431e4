package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
)

// jobLog tells what a run without a tracker is doing, on the terminal or in --log-file, and keeps its raw streams.
type jobLog struct {
	ui   *printer
	name string
	dir  string   // of the raw streams
	file *os.File // --log-file; nil: the terminal
}

// jobLog opens the log of one run.
func (a *app) jobLog(p *parts, f runFlags) (*jobLog, error) {
	l := &jobLog{ui: a.ui, name: f.name, dir: filepath.Join(p.state, "jobs", "runs", time.Now().UTC().Format("20060102-150405.000000000"))}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if f.logFile == "" {
		return l, nil
	}
	var err error
	l.file, err = os.OpenFile(a.path(f.logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--log-file: %v", err)
	}
	l.say("run started at %s", time.Now().Format(time.RFC3339))
	return l, nil
}

func (l *jobLog) close() {
	if l.file != nil {
		_ = l.file.Close() // each line was written when it was said
	}
}

func (l *jobLog) stream(name string) (io.WriteCloser, error) {
	f, err := os.OpenFile(filepath.Join(l.dir, filepath.Base(name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	return pool.Capped(f), nil
}

func (l *jobLog) say(format string, args ...any) {
	text := clean(fmt.Sprintf(format, args...))
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
		l.say("%s", e.Text)
	case loop.EventSignal:
		l.say("completion signal seen: %s", e.Text)
	case loop.EventCommits:
		l.say("%s", plural(e.New, "new commit"))
	case loop.EventSetup, loop.EventGate:
		if e.Check != nil {
			l.say("%s %s: exit status %d", e.Kind, e.Check.Command, e.Check.ExitCode)
		}
	case loop.EventAgent:
		l.agent(e.Agent)
	case loop.EventEnded:
		if e.Result != nil && e.Result.Failure != nil {
			l.say("agent failed: %s", e.Result.Failure)
		}
	}
}

func (l *jobLog) agent(e *agents.Event) {
	switch {
	case e == nil:
	case e.Kind == agents.EventMessage && e.Text != "":
		l.say("%s", e.Text)
	case e.Kind == agents.EventTool:
		l.say("  %s %s", e.Name, e.Detail)
	case e.Kind == agents.EventRetry, e.Kind == agents.EventNotice && l.ui.verbose:
		l.say("  %s: %s", e.Kind, e.Text)
	}
}

// jobData is what `ralph run --json` prints. Fields are only ever added.
type jobData struct {
	End        loop.End          `json:"end"`
	Error      string            `json:"error,omitempty"`
	Signal     string            `json:"completion_signal,omitempty"`
	Iterations []loop.Iteration  `json:"iterations"`
	Branch     string            `json:"branch"`
	Target     string            `json:"target"`
	Commits    []commitData      `json:"commits"`
	Merged     string            `json:"merged,omitempty"`
	Worktree   string            `json:"worktree,omitempty"`
	WIP        string            `json:"uncommitted,omitempty"`
	Gate       []loop.Check      `json:"gate"`
	Usage      agents.Usage      `json:"usage"`
	Message    string            `json:"message"`
	Output     *loop.OutputValue `json:"output,omitempty"`
	Result     json.RawMessage   `json:"result,omitempty"` // the validated output
	Warnings   []string          `json:"warnings"`
	Logs       string            `json:"logs"`
}

type commitData struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
}

func jobJSON(r pool.JobResult, l *jobLog) jobData {
	d := jobData{
		End: r.End, Signal: r.Signal, Iterations: r.Iterations, Branch: r.Branch, Target: r.Target, Commits: []commitData{},
		Merged: r.Merged, Worktree: r.Tree, WIP: r.WIP, Gate: r.Gate, Usage: r.Usage, Message: r.Message,
		Output: r.Output, Warnings: r.Warnings, Logs: l.dir,
	}
	if r.Err != nil {
		d.Error = r.Err.Error()
	}
	if r.Output != nil {
		d.Result = r.Output.JSON
	}
	for _, c := range r.Commits {
		d.Commits = append(d.Commits, commitData{c.SHA, c.Subject})
	}
	return d
}
