package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
)

const tailKept = 4 << 10 // bytes of a command's output in a Check

// RunCommands runs commands in order and stops at the first failure. A failing command is a Check, not an error. An error means
// that it is unknown whether a command ran (sandbox broken, run interrupted). The kind is that of their events and part of the
// names of their logs. Of the Config it uses Sandbox, which it requires, Timers, Interrupt, Observe and Stream.
func RunCommands(ctx context.Context, c Config, kind EventKind, lines []Command) ([]Check, error) {
	if c.Sandbox == nil {
		return nil, errors.New("loop: Sandbox is required")
	}
	return newRunner(ctx, c).checks(ctx, kind, 0, fmt.Sprintf("%s-0", kind), lines)
}

// GateLog returns the name of the log of a gate command, counted from 0, in an iteration; iteration 0 is that of RunCommands.
func GateLog(iteration, line int) string { return fmt.Sprintf("gate-%d-%d.log", iteration, line+1) }

// checks runs commands in order until one fails. The names of their logs begin with logs.
func (r *runner) checks(ctx context.Context, kind EventKind, n int, logs string, lines []Command) ([]Check, error) {
	checks := make([]Check, 0, len(lines))
	for i, cmd := range lines {
		check, err := r.check(ctx, kind, n, fmt.Sprintf("%s-%d.log", logs, i+1), cmd)
		if err != nil {
			return checks, fmt.Errorf("%s `%s`: %w", kind, neutral.Excerpt(cmd.Line, 100), err)
		}
		checks = append(checks, check)
		if !check.Passed() {
			break
		}
	}
	return checks, nil
}

// check runs one command of the gate or the setup. It streams the output to the log and keeps the end of it.
func (r *runner) check(ctx context.Context, kind EventKind, n int, log string, cmd Command) (Check, error) {
	timeout := cmp.Or(cmd.Timeout, r.c.Timers.Command)
	raw, tail := r.openSink(log), proc.NewTail(tailKept) // before the event, whose receiver may look for the log
	defer raw.close()
	r.observe.emit(Event{Kind: kind, Iteration: n, Text: neutral.Shorten(cmd.Line, eventText)})
	both := &proc.Merged{To: io.MultiWriter(raw, tail)}

	start := time.Now()
	exit, timedOut, err := r.shell(ctx, shell{line: cmd.Line, timeout: timeout, stdout: both, stderr: both})
	if err != nil {
		return Check{}, err
	}
	check := Check{
		Command: cmd.Line, ExitCode: exit.Code, Duration: time.Since(start), TimedOut: timedOut, Tail: tail.String(),
	}
	if timedOut {
		check.Limit = fmt.Sprintf("%s (%s)", cmp.Or(cmd.Limit, "its time limit"), shortDuration(timeout))
	}
	r.observe.emit(Event{Kind: kind, Iteration: n, Text: neutral.Shorten(cmd.Line, eventText), Check: &check})
	return check, nil
}
