package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// maxLogs is how many commands the artefacts hold: the last ones.
const maxLogs = 64

// Result is a command that ran to its end.
type Result struct {
	Argv     []string       `json:"argv"`
	Exit     sandboxes.Exit `json:"exit"`
	Stdout   []byte         `json:"stdout"` // the end of it, at most Config.MaxOutput bytes
	Stderr   []byte         `json:"stderr"`
	Dropped  int64          `json:"dropped"` // bytes of both that are not kept
	Started  time.Time      `json:"started"`
	Duration time.Duration  `json:"duration"`
}

// Run runs one command. The error is that of [sandboxes.Sandbox]: nil means that the command ran, however it ended;
// [Result.Err] says whether it failed. The command's own writers get all of its output.
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

// failureLines is how much of a failed command's output its error shows.
const failureLines = 50

// CommandError is a command that ran and failed.
type CommandError struct {
	Command string         // the program
	Exit    sandboxes.Exit // how it ended
	Stderr  string         // the last 50 lines, as far as they are kept
	Stdout  string         // the same of standard output
}

// Err is a [CommandError] when the command failed, and nil when it exited with status 0.
func (r Result) Err() error {
	if r.Exit.OK() {
		return nil
	}
	return &CommandError{Command: r.Argv[0], Exit: r.Exit,
		Stderr: proc.LastLines(string(r.Stderr), failureLines), Stdout: proc.LastLines(string(r.Stdout), failureLines)}
}

// Error shows the end of standard error, or of standard output when standard error is empty.
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

// script runs a shell script of ours inside. The string is the line of standard error that explains a failure best.
func (s *Session) script(ctx context.Context, text string, cmd sandboxes.Command, args ...string) (sandboxes.Exit, string, error) {
	errs := proc.NewTail(4 << 10)
	cmd.Argv, cmd.Stderr, cmd.Grace = append([]string{"sh", "-c", text, "sh"}, args...), errs, 5*time.Second
	exit, err := s.box.Exec(ctx, cmd)
	message := failureLine(errs.String())
	if message == "" {
		message = fmt.Sprintf("exit status %d", exit.Code)
	}
	return exit, message, err
}

// mustScript is script for what has to succeed.
func (s *Session) mustScript(ctx context.Context, text string, cmd sandboxes.Command, args ...string) error {
	exit, message, err := s.script(ctx, text, cmd, args...)
	if err == nil && !exit.OK() {
		err = errors.New(message)
	}
	return err
}

// failureLine is git's own fatal or error line, else the last one.
func failureLine(message string) string {
	last := ""
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return printable(line)
		}
		if line != "" {
			last = line
		}
	}
	return printable(last)
}
