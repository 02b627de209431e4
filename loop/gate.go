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

// RunGate runs the gate's commands in order and stops at the first that fails. An error means a command is not known
// to have run (sandbox broken, interrupted); a failing command is a Check, not an error. Of the Config it needs
// Sandbox and Gate; Timers, Interrupt, Observe and Stream count as in Run.
func RunGate(ctx context.Context, c Config) ([]Check, error) {
	if c.Sandbox == nil {
		return nil, errors.New("loop: Sandbox is required")
	}
	return newRunner(ctx, c).checks(ctx, EventGate, 0, c.Gate)
}

// RunSetup runs the commands of Setup as RunGate does those of Gate.
func RunSetup(ctx context.Context, c Config) ([]Check, error) {
	if c.Sandbox == nil {
		return nil, errors.New("loop: Sandbox is required")
	}
	return newRunner(ctx, c).checks(ctx, EventSetup, 0, c.Setup)
}

// RunAfter runs the commands of Gate as RunGate does, as those that follow a run.
func RunAfter(ctx context.Context, c Config) ([]Check, error) {
	if c.Sandbox == nil {
		return nil, errors.New("loop: Sandbox is required")
	}
	return newRunner(ctx, c).checks(ctx, EventAfter, 0, c.Gate)
}

// GateLog is the name of the log of a gate's line, 0 the first, in an iteration; iteration 0 is that of RunGate.
func GateLog(iteration, line int) string { return checkLog(EventGate, iteration, line) }

func checkLog(kind EventKind, iteration, line int) string {
	return fmt.Sprintf("%s-%d-%d.log", kind, iteration, line+1)
}

// checks runs commands in order until one fails.
func (r *runner) checks(ctx context.Context, kind EventKind, n int, lines []Command) ([]Check, error) {
	checks := make([]Check, 0, len(lines))
	for i, cmd := range lines {
		check, err := r.check(ctx, kind, n, checkLog(kind, n, i), cmd)
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

// check runs one command of the gate or the setup. Its output goes to the log as it comes; the end of it is kept.
func (r *runner) check(ctx context.Context, kind EventKind, n int, log string, cmd Command) (Check, error) {
	timeout := cmp.Or(cmd.Timeout, r.c.Timers.Command)
	raw, tail := r.openSink(log), proc.NewTail(tailKept) // before the event: who gets that may look for the log
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
	r.observe.emit(Event{Kind: kind, Iteration: n, Text: neutral.Shorten(cmd.Line, eventText), Check: &check})
	return check, nil
}
