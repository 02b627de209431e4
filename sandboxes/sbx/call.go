package sbx

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
)

// How long a call may take at most. A create pulls an image where there is none, and an exec may start a microVM.
const (
	createLimit = 10 * time.Minute
	callLimit   = 2 * time.Minute
)

// callError is a call of sbx that did not succeed.
type callError struct {
	verb string
	code int
	said string // the last line of its standard error
}

func (e *callError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("sbx %s: exit status %d", e.verb, e.code)
	}
	return "sbx " + e.verb + ": " + e.said
}

// call runs sbx and returns what it prints. It never asks.
func (p *Provider) call(ctx context.Context, stdin string, args ...string) (string, error) {
	var out bytes.Buffer
	limit := callLimit
	if args[0] == "create" {
		limit = createLimit
	}
	err := p.stream(ctx, limit, strings.NewReader(stdin), &out, io.Discard, args...)
	return out.String(), err
}

func (p *Provider) stream(ctx context.Context, limit time.Duration, stdin io.Reader, out, said io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("sbx %s has not answered for %s", args[0], limit))
	defer cancel()
	errs := proc.NewTail(4 << 10)
	// No mark: the daemon of sbx starts with the first call and has to outlive it.
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: p.argv(args...), Dir: "/", Env: p.env, Stdin: stdin, Stdout: out, Stderr: io.MultiWriter(errs, said),
	})
	if err != nil {
		return startError(err)
	}
	if exit.Code != 0 {
		return &callError{verb: args[0], code: exit.Code, said: lastLine(errs.String())}
	}
	return nil
}

func (p *Provider) argv(args ...string) []string { return slices.Concat(p.config.Command, args) }

// startError says what is missing when sbx cannot be started.
func startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("sbx is not installed (and ralph's use of it is tested against a stand-in only): "+
			"install Docker Sandboxes and run sbx login, or choose another sandbox with --sandbox: %w", err)
	}
	return err
}

// lastLine is the last line with something on it: programs say the cause last.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
