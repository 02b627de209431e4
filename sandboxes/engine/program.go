// Package engine is the common part of providers that drive another program by its command line: calling it and reading
// its errors ([Program]), and ending the client of a command ([Client]). Packages container and sbx use it, and package
// supervisor for its own commands. Everything is safe for concurrent use.
package engine

import (
	"bytes"
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

// CallLimit is the longest that one call may take. None takes a second when all is well.
const CallLimit = 2 * time.Minute

// outputLimit is the most bytes that a call may print. What programs print inside a sandbox is among it.
const outputLimit = 16 << 20

// Program is an engine's program.
type Program struct {
	Name    string   // for errors
	Command []string // the program, and the arguments that come before its own
	Env     []string
	Missing string // what to do if it is not installed

	limit  time.Duration
	stdin  io.Reader
	copies [2]io.Writer
}

// Limit is the program with another longest time of a call.
func (p Program) Limit(d time.Duration) Program { p.limit = d; return p }

// Input is the program with an input, and the longest time that reading it may take.
func (p Program) Input(r io.Reader, d time.Duration) Program { p.stdin, p.limit = r, d; return p }

// Temp is the program with another folder for temporary files.
func (p Program) Temp(dir string) Program {
	p.Env = append(slices.Clip(p.Env), "TMPDIR="+dir)
	return p
}

// Copy is the program with writers that get its standard output and error output, too.
func (p Program) Copy(stdout, stderr io.Writer) Program {
	p.copies = [2]io.Writer{stdout, stderr}
	return p
}

// Argv is a command line of the program.
func (p Program) Argv(args ...string) []string { return slices.Concat(p.Command, args) }

// Call runs the program and returns its standard output.
func (p Program) Call(ctx context.Context, args ...string) (string, error) {
	limit := p.limit
	if limit == 0 {
		limit = CallLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s %s has not answered for %s", p.Name, args[0], limit))
	defer cancel()
	var text bytes.Buffer
	out := &proc.Limit{To: &text, Room: outputLimit, Full: make(chan struct{})}
	errs := proc.NewTail(4 << 10)
	// No mark: the monitor of a container, and the daemon of sbx, descend from a call and have to outlive it.
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: p.Argv(args...), Dir: "/", Env: p.Env, Stdin: p.stdin, Stdout: both(out, p.copies[0]), Stderr: both(errs, p.copies[1]),
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

func both(a, b io.Writer) io.Writer {
	if b == nil {
		return a
	}
	return io.MultiWriter(a, b)
}

// StartError explains an error of a process if the program is not installed.
func (p Program) StartError(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return sandboxes.Fixable(fmt.Errorf("%s is not installed: %s: %w",
			p.Name, p.Missing, err), sandboxes.Fix{Setting: sandboxes.SetProvider})
	}
	return err
}

// CallError is a call that did not succeed.
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

// LastLine is the last line with something on it, because programs name the cause last. Docker's advice on its help comes
// after it and is passed over.
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
