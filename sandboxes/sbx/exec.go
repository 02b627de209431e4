package sbx

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

var errNoTrailer = errors.New("sbx ended without saying how the command did")

// Exec runs one command with a shell inside.
func (b *box) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a command", Err: errors.New("no program is named")}
	}
	// The client process does not end with ctx: the command inside must end first.
	client, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	end, err := b.commands.Begin(stop)
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer end()

	id := rand.Text()
	file := filepath.Join(b.state, id)
	dir, env := b.workdir, b.env
	if cmd.Dir != "" {
		dir, env = cmd.Dir, append(slices.Clip(env), "PWD="+cmd.Dir)
	}
	text, err := script(dir, slices.Concat(b.user.env, env, cmd.Env), cmd.Argv)
	if err != nil {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: err}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		if b.commands.Closed() {
			return sandboxes.Exit{}, sandboxes.ErrClosed
		}
		return sandboxes.Exit{}, fmt.Errorf("write the command: %w", err)
	}
	defer func() { _ = os.Remove(file) }()

	last, err := b.run(ctx, client, stop, id, cmd)
	part, failed := map[string]string{"place": "folder in /run", "namespace": "namespace", "git": ".git file"}[last.refused]
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case b.commands.Closed() && (err != nil || last.code > 128):
		return sandboxes.Exit{}, sandboxes.ErrClosed
	case err != nil:
		return sandboxes.Exit{}, fmt.Errorf("run %s in the sbx sandbox: %w", cmd.Argv[0], b.provider.program().StartError(err))
	case failed:
		return sandboxes.Exit{}, fmt.Errorf("run %s in the sbx sandbox: root inside could not make its %s", cmd.Argv[0], part)
	case last.refused != "":
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusal(last.refused, dir)}
	}
	return sandboxes.Exit{Code: last.code, Signal: signalName(last.code)}, nil
}

// run runs a command's client and returns when all processes of the command have ended.
func (b *box) run(ctx, client context.Context, stop context.CancelCauseFunc, id string, cmd sandboxes.Command) (trailer, error) {
	// The trailer is at the end of the error output, or of the combined output if sbx merges both streams.
	stdout, stderr := newTrailerReader(cmd.Stdout, id), newTrailerReader(cmd.Stderr, id)
	output := proc.NewTail(4 << 10)
	ended := make(chan error, 1)
	p := b.provider.program()
	go func() {
		_, err := proc.Run(client, proc.Spec{
			Argv: p.Argv(b.runCommand(id)...), Dir: "/", Env: p.Env, Stdin: cmd.Stdin, Stdout: stdout, Stderr: io.MultiWriter(stderr, output), // neither fails
		})
		ended <- err
	}()
	err := engine.Client{
		Ended:     ended,
		Terminate: func() { _ = b.signal(ctx, id, "TERM") }, // after a failure, the kill at the end of the grace time follows
		Kill:      func() { _ = b.signal(ctx, id, "KILL") },
		GiveUp: func() { // the microVM must be stopped then
			_, _ = b.provider.call(context.WithoutCancel(ctx), "stop", b.name)
			stop(fmt.Errorf("%s did not exit after SIGKILL; sandbox stopped", cmd.Argv[0]))
		},
	}.Steer(ctx, cmd)
	last, found := stderr.end()
	if first, inOutput := stdout.end(); !found {
		last, found = first, inOutput
	}
	if !found && !b.commands.Closed() { // the client may have ended before the command
		if endErr := b.signal(ctx, id, "KILL"); endErr != nil && err == nil && !b.commands.Closed() {
			err = fmt.Errorf("end the processes that it left behind: %w", endErr)
		}
	}
	if err == nil && !found {
		err = errNoTrailer
		if text := engine.LastLine(output.String()); text != "" {
			err = fmt.Errorf("%w: %s", errNoTrailer, text)
		}
	}
	if err != nil {
		return trailer{}, err
	}
	return last, nil
}

// signal sends TERM to a command. With KILL it kills the command and all its processes, and returns when they have ended.
func (b *box) signal(ctx context.Context, id, name string) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), engine.EndLimit, errors.New("sbx does not answer"))
	defer cancel()
	return b.asRoot(ctx, "end", id, name)
}

// refusal returns the reason why a command was not started.
func refusal(why, dir string) error {
	switch why {
	case "folder":
		return fmt.Errorf("its folder %s: %w", dir, fs.ErrNotExist)
	case "missing":
		return exec.ErrNotFound
	}
	return fs.ErrPermission
}

// signalName returns the name of the signal that ended a command, or "". A shell reports only 128 plus the signal's number,
// so a command that exits with such a status looks killed.
func signalName(code int) string {
	names := map[int]string{
		1:  "SIGHUP",
		2:  "SIGINT",
		3:  "SIGQUIT",
		4:  "SIGILL",
		5:  "SIGTRAP",
		6:  "SIGABRT",
		7:  "SIGBUS",
		8:  "SIGFPE",
		9:  "SIGKILL",
		10: "SIGUSR1",
		11: "SIGSEGV",
		12: "SIGUSR2",
		13: "SIGPIPE",
		14: "SIGALRM",
		15: "SIGTERM",
		24: "SIGXCPU",
		25: "SIGXFSZ",
		31: "SIGSYS",
	}
	return names[code-128]
}
