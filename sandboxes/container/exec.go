package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// execTries is how often a command is sent that has not started: engines refuse some of many at once.
const execTries = 3

// errNoReport is the end of an engine's client without a word of how the command ended.
var errNoReport = errors.New("the engine's client ended without a report")

// Exec runs one command by a helper inside.
func (b *box) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case len(cmd.Argv) == 0:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a command", Err: errors.New("no program is named")}
	case b.copies != nil:
		return b.copies.around(ctx, cmd)
	}
	return b.exec(ctx, cmd, false)
}

// exec runs one command. A command of our own also runs when no others do any more.
func (b *box) exec(ctx context.Context, cmd sandboxes.Command, own bool) (sandboxes.Exit, error) {
	text, err := json.Marshal(b.order(cmd))
	if err != nil {
		return sandboxes.Exit{}, fmt.Errorf("encode %s: %w", cmd.Argv[0], err)
	}
	if len(text) > maxFrame {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: fmt.Errorf(
			"its arguments and environment have more than %d bytes; long text belongs on its standard input", maxFrame/2)}
	}
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	// The client does not end with ctx: it is told to kill what is inside, and to say when that is done.
	client, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	e, err := b.begin(kill, stop, own)
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer b.finish(e)

	var s *session
	for range execTries {
		s = newSession(cmd)
		if err = s.run(ctx, client, b, text); !errors.Is(err, errNoReport) || s.started || b.over(ctx, own) {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case s.inputErr() != nil:
		return sandboxes.Exit{}, fmt.Errorf("read the input of %s: %w", cmd.Argv[0], s.inputErr())
	case err == nil && s.refused != nil:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: s.refused.err()}
	case err == nil:
		b.note(s.report.Killed)
		return sandboxes.Exit{Code: s.report.Code, Signal: s.report.Signal}, nil
	case b.isClosed() && !own:
		return sandboxes.Exit{}, sandboxes.ErrClosed
	}
	err = fmt.Errorf("run %s in the %s sandbox: %w", cmd.Argv[0], b.provider.engine.Name, b.autopsy(ctx, err, s))
	b.giveUp(err)
	return sandboxes.Exit{}, err
}

// order is the command with the whole environment; of entries with one name the last counts.
func (b *box) order(cmd sandboxes.Command) order {
	env := b.env
	o := order{Dir: []byte(b.workdir)}
	if cmd.Dir != "" {
		o.Dir = []byte(cmd.Dir)
		env = append(slices.Clip(env), "PWD="+cmd.Dir)
	}
	at := make(map[string]int)
	for _, entry := range slices.Concat(env, cmd.Env) {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		if i, seen := at[name]; seen {
			o.Env[i] = []byte(entry)
			continue
		}
		at[name] = len(o.Env)
		o.Env = append(o.Env, []byte(entry))
	}
	for _, a := range cmd.Argv {
		o.Argv = append(o.Argv, []byte(a))
	}
	return o
}

func (b *box) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// over reports whether trying again is pointless.
func (b *box) over(ctx context.Context, own bool) bool {
	if ctx.Err() != nil || b.isClosed() && !own {
		return true
	}
	st, err := b.provider.state(ctx, b.name)
	return err != nil || !st.Running
}

// containerState is what matters of the State that "inspect" prints.
type containerState struct {
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

// autopsy says why no report came.
func (b *box) autopsy(ctx context.Context, err error, s *session) error {
	st, stateErr := b.provider.state(ctx, b.name)
	switch {
	case stateErr != nil:
		return fmt.Errorf("its container is gone: %w", stateErr)
	case st.OOMKilled:
		return errors.New("its container used up its memory; give it more (limits)")
	case !st.Running:
		if words := b.provider.lastWords(ctx, b.name); words != "" {
			return fmt.Errorf("its container has ended: %s", words)
		}
		return fmt.Errorf("its container has ended (exit status %d)", st.ExitCode)
	}
	if said := lastLine(s.errs.String()); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// err is the refusal as an error that wraps its kind.
func (r *refusal) err() error {
	kind := map[string]error{
		reasonNotFound: exec.ErrNotFound, reasonMissing: fs.ErrNotExist, reasonDenied: fs.ErrPermission,
	}[r.Reason]
	return &refusedError{text: r.Text, kind: kind}
}

type refusedError struct {
	text string
	kind error // may be nil
}

func (e *refusedError) Error() string { return e.text }

func (e *refusedError) Unwrap() error { return e.kind }
