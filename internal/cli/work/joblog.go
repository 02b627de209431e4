package work

import (
	"fmt"
	"os"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
)

// jobLog prints the progress of a run without a tracker, on the terminal or into --log-file.
type jobLog struct {
	ui      *screen.Printer
	secrets *redact.Secrets
	name    string
	file    *os.File // nil: the terminal
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
		_ = l.file.Close() // lines are not buffered
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

// check prints the result of a command of setup, gate or after.
func (l *jobLog) check(e journal.Event) {
	if e.Check != nil {
		l.print("%s%s: %s: %s", e.Kind, report.PlaceSuffix(e.Place), e.Check.Command, e.Check.Ending())
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
