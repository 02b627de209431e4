package sbx

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// endLimit is how long the end of a tree may take before the microVM has to end with it.
const endLimit = 20 * time.Second

// errNoWord is the end of the client without a word of how the command ended.
var errNoWord = errors.New("sbx ended without saying how the command did")

// Exec runs one command by a shell inside.
func (b *box) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a command", Err: errors.New("no program is named")}
	}
	// The client does not end with ctx: what runs inside has to end first.
	client, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	e, err := b.begin(stop)
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer b.finish(e)

	id := rand.Text()
	file := filepath.Join(b.state, id)
	dir, env := b.workdir, b.env
	if cmd.Dir != "" {
		dir, env = cmd.Dir, append(slices.Clip(env), "PWD="+cmd.Dir)
	}
	text, err := order(dir, slices.Concat(b.user.env, env, cmd.Env), cmd.Argv)
	if err != nil {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: err}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		if b.isClosed() {
			return sandboxes.Exit{}, sandboxes.ErrClosed
		}
		return sandboxes.Exit{}, fmt.Errorf("write the command: %w", err)
	}
	defer func() { _ = os.Remove(file) }()

	word, err := b.run(ctx, client, stop, id, cmd)
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx)
	case b.isClosed() && (err != nil || word.code > 128):
		return sandboxes.Exit{}, sandboxes.ErrClosed
	case err != nil:
		return sandboxes.Exit{}, fmt.Errorf("run %s in the sbx sandbox: %w", cmd.Argv[0], startError(err))
	case word.refused == "place", word.refused == "namespace", word.refused == "git":
		return sandboxes.Exit{}, fmt.Errorf("run %s in the sbx sandbox: root inside could not make its %s", cmd.Argv[0], map[string]string{
			"place": "folder in /run", "namespace": "namespace", "git": ".git file"}[word.refused])
	case word.refused != "":
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusal(word.refused, dir)}
	}
	return sandboxes.Exit{Code: word.code, Signal: signalName(word.code)}, nil
}

// run returns when nothing of the command is left.
func (b *box) run(
	ctx, client context.Context, stop context.CancelCauseFunc, id string, cmd sandboxes.Command,
) (last, error) {
	// The word comes with what the command writes to standard error, or after all output where sbx makes one of both.
	stdout, stderr := newTrailer(cmd.Stdout, id), newTrailer(cmd.Stderr, id)
	said := proc.NewTail(4 << 10)
	ended := make(chan error, 1)
	go func() {
		_, err := proc.Run(client, proc.Spec{
			Argv: b.provider.argv(b.attend(id)...), Dir: "/", Env: b.provider.env, Stdin: cmd.Stdin,
			Stdout: stdout, Stderr: tee{stderr, said},
		})
		ended <- err
	}()
	err := b.steer(ctx, stop, id, cmd, ended)
	first, inOut := stdout.end()
	word, inErr := stderr.end()
	if !inErr {
		word = first
	}
	if !inOut && !inErr && !b.isClosed() { // the client may have gone without the command
		if endErr := b.signal(ctx, id, "KILL"); endErr != nil && err == nil && !b.isClosed() {
			err = fmt.Errorf("end what it left behind: %w", endErr)
		}
	}
	switch {
	case err != nil:
		return last{}, err
	case !inOut && !inErr:
		if text := lastLine(said.String()); text != "" {
			return last{}, fmt.Errorf("%w: %s", errNoWord, text)
		}
		return last{}, errNoWord
	}
	return word, nil
}

// steer passes on what has to end the command, and waits for the client.
func (b *box) steer(
	ctx context.Context, stop context.CancelCauseFunc, id string, cmd sandboxes.Command, ended <-chan error,
) error {
	interrupt, over := cmd.Interrupt, ctx.Done()
	var grace, limit <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case <-interrupt:
			interrupt = nil
			_ = b.signal(ctx, id, "TERM") // the end of grace does the rest
			d := cmd.Grace
			if d <= 0 {
				d = proc.DefaultGrace
			}
			grace = time.After(d)
		case <-grace:
			grace = nil
			_ = b.signal(ctx, id, "KILL")
			limit = time.After(endLimit)
		case <-over:
			over, interrupt, grace = nil, nil, nil
			_ = b.signal(ctx, id, "KILL")
			limit = time.After(endLimit)
		case <-limit: // then the microVM has to stop
			limit = nil
			_, _ = b.provider.call(context.WithoutCancel(ctx), "", "stop", b.name)
			stop(fmt.Errorf("%s outlived its killing; the sandbox was stopped", cmd.Argv[0]))
		}
	}
}

// signal asks a command to end with TERM; with KILL it ends it, with all it started, and returns when none is left.
func (b *box) signal(ctx context.Context, id, name string) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), endLimit, errors.New("sbx does not answer"))
	defer cancel()
	return b.asRoot(ctx, "end", id, name)
}

// tee writes to both; neither fails.
type tee struct {
	a *trailer
	b *proc.Tail
}

func (t tee) Write(p []byte) (int, error) {
	_, _ = t.b.Write(p)
	return t.a.Write(p)
}

// refusal says why a command was not started.
func refusal(why, dir string) error {
	switch why {
	case "folder":
		return fmt.Errorf("its folder %s: %w", dir, fs.ErrNotExist)
	case "missing":
		return exec.ErrNotFound
	}
	return fs.ErrPermission
}

// signalName is the name of the signal by which a command ended. A shell tells no more than 128 plus its number, so that
// a command which exits with such a status by itself is taken for killed.
func signalName(code int) string {
	names := map[int]string{
		1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
		10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
	}
	return names[code-128]
}
