package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/ralph-pool/ralph/internal/proc"
)

// NoneConfig configures the provider "none". Its zero value is the default.
type NoneConfig struct {
	// Env is the host's environment ("K=V") that commands inherit from; nil means this process's environment.
	Env []string
	// Deny lists more names that are not inherited, in addition to the built-in ones, such as a tracker's token variables
	// (tracker.Registry.SecretVars). One "*" matches any characters. The Env of a Spec or Command may still set them.
	Deny []string
}

// None is the provider "none": commands run on the host, as the user, in the worktree. It only hides the host's tokens and
// ends the processes that it started. Make one with [NewNone]: a zero None refuses to work.
type None struct {
	env []string // nil: not made with NewNone
}

var errNotMade = errors.New("sandbox none: make it with sandboxes.NewNone")

var (
	_ Provider = (*None)(nil)
	_ Reaper   = (*None)(nil)
	_ Sandbox  = (*noneSandbox)(nil)
)

// NewNone returns the provider.
func NewNone(c NoneConfig) *None {
	host := c.Env
	if host == nil {
		host = os.Environ()
	}
	return &None{env: inherit(host, slices.Concat(denied(), c.Deny))}
}

// Name returns "none".
func (*None) Name() string { return "none" }

// Environ returns the environment that commands start with. Package pool looks there for the name and address of git, so a
// decorator that adds to the environment overrides it.
func (n *None) Environ() []string { return slices.Clone(n.env) }

// Capabilities reports no isolation.
func (*None) Capabilities() Capabilities {
	return Capabilities{Files: InPlace, Isolation: NoIsolation}
}

// Check succeeds unless n is a zero None: there is nothing to install.
func (n *None) Check(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n.env == nil:
		return errNotMade
	}
	return nil
}

// Open returns a sandbox on the worktree, which must exist.
func (n *None) Open(ctx context.Context, spec Spec) (Sandbox, error) {
	if err := n.Check(ctx); err != nil {
		return nil, err
	}
	if spec.RequireIsolation {
		return nil, Fixable(fmt.Errorf("sandbox none does not isolate: %w", ErrUnsupported), Fix{Setting: SetProvider})
	}
	// The provider ignores the other fields, so they are not checked.
	if err := (Spec{Run: spec.Run, Worktree: spec.Worktree}).Check(); err != nil {
		return nil, fmt.Errorf("open sandbox none: %w", err)
	}
	return &noneSandbox{
		run: spec.Run, dir: spec.Worktree, env: slices.Concat(n.env, []string{"PWD=" + spec.Worktree}, spec.Env),
	}, nil
}

// Reap ends the processes that a crashed ralph left of a run.
func (*None) Reap(ctx context.Context, run string) error { return proc.KillMarked(ctx, run) }

type noneSandbox struct {
	run, dir string
	env      []string
	commands Commands
	// interrupted is set when a command did not run to its end. Commands that did left no processes.
	interrupted atomic.Bool
}

func (s *noneSandbox) Workdir() string { return s.dir }

func (s *noneSandbox) Exec(ctx context.Context, cmd Command) (Exit, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end, err := s.commands.Begin(cancel)
	if err != nil {
		return Exit{}, err
	}
	defer end()
	dir, env := s.dir, s.env
	if cmd.Dir != "" {
		dir = cmd.Dir
		env = append(slices.Clip(env), "PWD="+dir)
	}
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: cmd.Argv, Dir: dir, Env: slices.Concat(env, cmd.Env), Mark: s.run,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		Interrupt: cmd.Interrupt, Grace: cmd.Grace,
	})
	if start, ok := errors.AsType[*proc.StartError](err); ok {
		return Exit{}, &StartError{Argv0: start.Name, Err: start.Err}
	}
	if err != nil {
		s.interrupted.Store(true)
		return Exit{}, err
	}
	return ExitOf(exit.Code, exit.Signal), nil
}

// Close kills the running commands and waits for their Execs. If some were running, or a command was cut short earlier,
// Close also kills every process with the run's mark. It may be called again if ctx ends first.
func (s *noneSandbox) Close(ctx context.Context) error {
	_, err := s.commands.Close(ctx, func(ctx context.Context) error {
		if err := s.commands.Stop(ctx); err != nil {
			return err
		}
		if !s.interrupted.Load() {
			return nil
		}
		return proc.KillMarked(ctx, s.run)
	})
	if err != nil {
		return fmt.Errorf("close sandbox none: %w", err)
	}
	return nil
}
