package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// execTries is how often a command is sent until it starts: engines refuse some of many concurrent calls.
const execTries = 3

var errNoReport = errors.New("the engine's client ended without a report")

// Exec runs one command with a helper inside.
func (b *box) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case len(cmd.Argv) == 0 || cmd.Argv[0] == "":
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a command", Err: errors.New("no program is named")}
	}
	text, err := json.Marshal(b.command(cmd))
	if err != nil {
		return sandboxes.Exit{}, fmt.Errorf("encode %s: %w", cmd.Argv[0], err)
	}
	if len(text) > inside.MaxFrame {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: fmt.Errorf(
			"its arguments and environment have more than %d bytes; pass long text on its standard input", inside.MaxFrame/2)}
	}
	// The client does not end with ctx: the helper must first kill the command and report that.
	client, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	end, err := b.commands.Begin(stop)
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer end()

	var s *session
	for range execTries {
		s = newSession(cmd)
		if err = s.run(ctx, client, b, text); !errors.Is(err, errNoReport) || s.started || b.isOver(ctx) {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case s.inputErr() != nil:
		return sandboxes.Exit{}, fmt.Errorf("read the input of %s: %w", cmd.Argv[0], s.inputErr())
	case err == nil && s.refused != nil:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusal{*s.refused}}
	case err == nil:
		b.counts.Add(*s.report)
		return s.report.Exit, nil
	case b.commands.Closed():
		return sandboxes.Exit{}, sandboxes.ErrClosed
	}
	silent := errors.Is(err, sandboxes.ErrUnavailable)
	if !silent {
		err = b.diagnose(ctx, err, s)
	}
	err = fmt.Errorf("run %s in the %s sandbox: %w", cmd.Argv[0], b.provider.engine.Name, err)
	if !silent || b.commands.Broken() == nil {
		_ = b.abort(err)
	}
	return sandboxes.Exit{}, err
}

// command returns the command with its complete environment.
func (b *box) command(cmd sandboxes.Command) inside.Command {
	dir, env := b.workdir, b.env
	if cmd.Dir != "" {
		dir, env = cmd.Dir, append(slices.Clip(env), "PWD="+cmd.Dir)
	}
	return inside.Command{Argv: bytesOf(cmd.Argv), Dir: []byte(dir), Env: bytesOf(proc.LastWins(slices.Concat(env, cmd.Env)))}
}

func bytesOf(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

// isOver reports whether another try is pointless.
func (b *box) isOver(ctx context.Context) bool {
	st, err := b.provider.state(ctx, b.name)
	return ctx.Err() != nil || b.commands.Closed() || err != nil || !st.Running
}

// containerState is the used part of State in the output of "inspect".
type containerState struct {
	Status    string
	Running   bool
	OOMKilled bool
	ExitCode  int
}

func (p *Provider) state(ctx context.Context, name string) (containerState, error) {
	var st containerState
	text, err := p.call(ctx, "container", "inspect", "--format", "{{json .State}}", name)
	if err == nil {
		err = json.Unmarshal([]byte(text), &st)
	}
	return st, err
}

// diagnose determines why no report arrived.
func (b *box) diagnose(ctx context.Context, err error, s *session) error {
	st, stateErr := b.settledState(ctx)
	switch {
	case st.OOMKilled && (!st.Running || !errors.Is(err, sandboxes.ErrKilledInside)): // docker reports an OOM kill of any process of a running container
		return sandboxes.Fixable(errors.New("its container used up its memory"), sandboxes.Fix{Setting: sandboxes.SetMemory})
	case st.Status == statusRemoving, stateErr != nil && b.isRemoved(ctx):
		return errors.New("its container was removed while the command ran")
	case stateErr != nil:
		return fmt.Errorf("%w: %w", sandboxes.ErrUnavailable, stateErr)
	case errors.Is(b.commands.Broken(), sandboxes.ErrKilledInside):
		return b.commands.Broken()
	case !st.Running:
		if words := b.provider.lastOutput(ctx, b.name); words != "" {
			return fmt.Errorf("its container has ended: %s", words)
		}
		if st.ExitCode == exitKilled { // nothing inside can send this signal to the first process
			return errors.New("its container was killed, by somebody or because memory ran out")
		}
		return fmt.Errorf("its container has ended (exit status %d)", st.ExitCode)
	}
	if last := engine.LastLine(s.errs.String()); last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

const (
	exitKilled     = 128 + 9    // status of a container whose first process was killed by SIGKILL
	statusStopping = "stopping" // podman's status before the first process has ended
	statusRemoving = "removing"

	removalTime  = time.Second // time for an engine to remove a container that it is ending
	removalPause = removalTime / 20
)

// settledState returns the container's state after the engine has ended and removed it, if the engine is doing so; after
// removalTime, the last state. An engine kills a container before it removes it, and may still report it as running.
func (b *box) settledState(ctx context.Context) (containerState, error) {
	wait, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	for {
		st, err := b.provider.state(ctx, b.name)
		going := st.Running || st.ExitCode == exitKilled || st.Status == statusStopping || st.Status == statusRemoving
		if err != nil || st.OOMKilled && !st.Running || !going || retry.Sleep(wait, removalPause) != nil {
			return st, err
		}
	}
}

// refusal is the helper's refusal as an error that wraps its kind.
type refusal struct{ inside.Refusal }

func (r refusal) Error() string { return r.Text }

func (r refusal) Unwrap() error {
	return map[string]error{
		inside.ReasonNotFound: exec.ErrNotFound, inside.ReasonMissing: fs.ErrNotExist, inside.ReasonDenied: fs.ErrPermission,
	}[r.Reason]
}
