package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// maxLogs is the number of latest commands in the artefacts.
const maxLogs = 64

// Result is the result of a command that ran to its end.
type Result struct {
	Argv     []string       `json:"argv"`
	Exit     sandboxes.Exit `json:"exit"`
	Stdout   []byte         `json:"stdout"` // the last Config.MaxOutput bytes
	Stderr   []byte         `json:"stderr"`
	Dropped  int64          `json:"dropped"` // bytes dropped from both
	Started  time.Time      `json:"started"`
	Duration time.Duration  `json:"duration"`
}

// Run runs one command. Its error is that of [sandboxes.Sandbox]: nil means that the command ran, whatever its exit status;
// [Result.Err] reports a failure. The writers of cmd get the whole output.
func (s *Session) Run(ctx context.Context, cmd sandboxes.Command) (Result, error) {
	done := func(_ Result, err error) error { return err }
	if s.config.Record != nil {
		var err error
		if done, err = s.config.Record(&cmd); err != nil {
			return Result{}, err
		}
	}
	out, errs := proc.NewTail(s.config.MaxOutput), proc.NewTail(s.config.MaxOutput)
	r := Result{Argv: slices.Clone(cmd.Argv), Started: time.Now()}
	exit, err := s.box.Exec(ctx, sandboxes.Tee(cmd, out, errs))
	r.Exit, r.Duration = exit, time.Since(r.Started)
	r.Stdout, r.Stderr = out.Bytes(), errs.Bytes()
	r.Dropped = out.Total() + errs.Total() - int64(len(r.Stdout)+len(r.Stderr))
	if err == nil {
		s.mu.Lock()
		s.logs = append(s.logs, r)
		s.logs = s.logs[max(0, len(s.logs)-maxLogs):]
		s.mu.Unlock()
	}
	return r, done(r, err)
}

// failureLines is the number of output lines in the error of a failed command.
const failureLines = 50

// CommandError means that a command ran and failed.
type CommandError struct {
	Command string         // the program
	Exit    sandboxes.Exit // how it ended
	Stderr  string         // the last 50 lines, or fewer if not kept
	Stdout  string         // the same of standard output
}

// Err returns a *[CommandError] if the command failed, and nil if it exited with status 0.
func (r Result) Err() error {
	if r.Exit.OK() {
		return nil
	}
	return &CommandError{Command: r.Argv[0], Exit: r.Exit,
		Stderr: proc.LastLines(string(r.Stderr), failureLines), Stdout: proc.LastLines(string(r.Stdout), failureLines)}
}

// Error includes the end of standard error or, if that is empty, of standard output.
func (e *CommandError) Error() string {
	text := fmt.Sprintf("%s exited with status %d", e.Command, e.Exit.Code)
	if e.Exit.Signal != "" {
		text = e.Command + " was ended by " + e.Exit.Signal
	}
	for _, output := range []string{e.Stderr, e.Stdout} {
		if strings.TrimSpace(output) != "" {
			return text + ":\n" + output
		}
	}
	return text
}

// script runs one of our shell scripts inside. The string is the line of standard error that best explains a failure.
func (s *Session) script(ctx context.Context, text string, cmd sandboxes.Command, args ...string) (sandboxes.Exit, string, error) {
	errs := proc.NewTail(4 << 10)
	cmd.Argv, cmd.Stderr, cmd.Grace = append([]string{"sh", "-c", text, "sh"}, args...), errs, 5*time.Second
	exit, err := s.box.Exec(ctx, cmd)
	return exit, cmp.Or(failureLine(errs.String()), fmt.Sprintf("exit status %d", exit.Code)), err
}

// mustScript is script for scripts that must succeed.
func (s *Session) mustScript(ctx context.Context, text string, cmd sandboxes.Command, args ...string) error {
	exit, message, err := s.script(ctx, text, cmd, args...)
	if err == nil && !exit.OK() {
		err = errors.New(message)
	}
	return err
}

// failureLine returns git's first "fatal:" or "error:" line, or else the last line.
func failureLine(message string) string {
	last := ""
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return neutral.Line(line)
		}
		if line != "" {
			last = line
		}
	}
	return neutral.Line(last)
}
