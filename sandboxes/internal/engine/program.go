// Package engine is the shared part of the providers that drive another program by its command line. [Program] calls it and
// interprets its errors, and [Client] ends the client process of a command. Packages container and sbx use it, and package
// supervisor uses Client for its own commands. Everything is safe for concurrent use.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// CallLimit is the default time limit of a call. Normal calls take less than a second.
const CallLimit = 2 * time.Minute

// outputLimit is the maximum output of a call in bytes. It includes the output of programs inside a sandbox.
const outputLimit = 16 << 20

// Program is the program of an engine.
type Program struct {
	Name    string   // for errors
	Command []string // the program and its leading arguments
	Env     []string
	Missing string // advice if it is not installed

	limit  time.Duration
	stdin  io.Reader
	copies [2]io.Writer
}

// Limit returns a copy of the program with another time limit of a call.
func (p Program) Limit(d time.Duration) Program { p.limit = d; return p }

// Input returns a copy of the program with an input and a time limit of the call.
func (p Program) Input(r io.Reader, d time.Duration) Program { p.stdin, p.limit = r, d; return p }

// Temp returns a copy of the program with another folder for temporary files.
func (p Program) Temp(dir string) Program {
	p.Env = append(slices.Clip(p.Env), "TMPDIR="+dir)
	return p
}

// Copy returns a copy of the program that also writes its output to stdout and stderr.
func (p Program) Copy(stdout, stderr io.Writer) Program {
	p.copies = [2]io.Writer{stdout, stderr}
	return p
}

// Argv returns a command line of the program.
func (p Program) Argv(args ...string) []string { return slices.Concat(p.Command, args) }

// Call runs the program and returns its standard output. A non-zero exit status is a *CallError.
func (p Program) Call(ctx context.Context, args ...string) (string, error) {
	limit := cmp.Or(p.limit, CallLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s %s has not answered for %s", p.Name, args[0], limit))
	defer cancel()
	var text bytes.Buffer
	out := &proc.Limit{To: &text, Room: outputLimit, Full: make(chan struct{})}
	errs := proc.NewTail(4 << 10)
	// No mark: the monitor of a container and the daemon of sbx descend from a call, and must outlive it.
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: p.Argv(args...), Dir: "/", Env: p.Env, Stdin: p.stdin, Stdout: combineWriters(out, p.copies[0]), Stderr: combineWriters(errs, p.copies[1]),
		Interrupt: out.Full, Grace: time.Millisecond,
	})
	if out.Dropped > 0 {
		return "", fmt.Errorf("%s %s has printed more than %d bytes", p.Name, args[0], outputLimit)
	}
	if err != nil {
		return "", p.StartError(err)
	}
	if exit.Code != 0 {
		verb := args[0]
		if verb == "image" {
			verb += " " + args[1]
		}
		return text.String(), &CallError{Command: p.Name + " " + verb, Code: exit.Code, Message: LastLine(errs.String())}
	}
	return text.String(), nil
}

func combineWriters(a, b io.Writer) io.Writer {
	if b == nil {
		return a
	}
	return io.MultiWriter(a, b)
}

// StartError adds advice to the error of a program that is not installed.
func (p Program) StartError(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return sandboxes.Fixable(fmt.Errorf("%s is not installed: %s: %w",
			p.Name, p.Missing, err), sandboxes.Fix{Setting: sandboxes.SetProvider})
	}
	return err
}

// CallError is the error of a call with a non-zero exit status.
type CallError struct {
	Command string // such as "docker image inspect"
	Code    int
	Message string // the last line of its error output
}

func (e *CallError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: exit status %d", e.Command, e.Code)
	}
	return e.Command + ": " + e.Message
}

// LastLine returns the last non-empty line, because programs print the cause last. It skips Docker's hint at its help,
// which follows the cause.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for len(lines) > 1 {
		last := strings.TrimSpace(lines[len(lines)-1])
		if last != "" && !(strings.HasPrefix(last, "Run '") && strings.HasSuffix(last, "--help' for more information")) {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
