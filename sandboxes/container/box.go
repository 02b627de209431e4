package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/inside"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// box is the container of one run.
type box struct {
	provider                  *Provider
	run, name, state, workdir string
	env                       []string
	limits                    sandboxes.Limits
	disk                      []string // volumes of its Disk's folders; nil: it has no Disk
	emptyHomeReason           string   // the reason why its home started empty; "": it did not
	tunnel                    *tunnel  // nil without egress, and if the proxy's socket is mounted

	commands sandboxes.Commands
	counts   inside.Counts
}

// Notices reports the processes killed at the memory limit, and whether the process limit was reached.
func (b *box) Notices() []sandboxes.Notice { return b.counts.Notices(b.limits) }

// EmptyHomeReason returns the reason why the home started empty although the Spec has one, or "".
func (b *box) EmptyHomeReason() string { return b.emptyHomeReason }

func (b *box) Workdir() string { return b.workdir }

// Close removes the container, with everything that runs in it. If the sandbox broke, its disk stays: nobody could fetch
// the files before.
func (b *box) Close(ctx context.Context) error {
	_, err := b.commands.Close(ctx, func(ctx context.Context) error { return b.remove(ctx, b.commands.Broken() == nil) })
	if err != nil {
		return fmt.Errorf("close sandbox %s: %w", b.provider.engine.Name, err)
	}
	return nil
}

// KeepDisk keeps the disk as if the sandbox had broken. It returns the command line that shows the files.
func (b *box) KeepDisk() (show string) {
	b.commands.Break(errors.New("its disk is kept"))
	if b.disk == nil {
		return ""
	}
	return b.provider.shellCommand(b.run, b.disk)
}

// remove removes the container and its state folder and, with disk, its volumes.
func (b *box) remove(ctx context.Context, disk bool) error {
	b.tunnel.close()
	if err := b.provider.end(ctx, b.name); err != nil {
		return err
	}
	switch {
	case b.disk == nil || !disk:
	case b.provider.config.Keep: // without this marker the volumes are only a copy
		if _, err := b.provider.call(ctx, "volume", "rm", "--force", volumeName(b.run, filledVolume)); err != nil {
			return err
		}
	default:
		if err := b.provider.RemoveDisk(ctx, b.run); err != nil {
			return err
		}
	}
	return os.RemoveAll(b.state)
}

// abort kills the container, because something in it is out of control; then every Exec ends. It returns an error only if
// the engine does not answer: the container may have ended by itself, and Close removes it in any case.
func (b *box) abort(why error) error {
	b.commands.Break(why)
	limit := b.provider.timeouts.end
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("%s kill: no end within %s", b.provider.engine.Name, limit))
	defer cancel()
	if _, err := b.provider.call(ctx, "kill", b.name); err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", sandboxes.ErrUnavailable, err)
	}
	return nil
}

// end removes a container, or only stops it if containers are kept. It returns when nothing runs in it any more.
func (p *Provider) end(ctx context.Context, name string) error {
	var err error
	for range endRounds {
		if p.config.Keep {
			_, err = p.call(ctx, "kill", name)
		} else {
			_, err = p.call(ctx, append(p.engine.dialect().remove, name)...)
		}
		if err == nil && !p.config.Keep {
			return nil
		}
		if !isRetryable(err) {
			return err
		}
		// It may be gone already, or another process may be removing it.
		there, listErr := p.containerExists(ctx, name, !p.config.Keep)
		if listErr == nil && !there {
			return nil
		}
		if !isRetryable(listErr) {
			return errors.Join(err, listErr)
		}
		if err := retry.Sleep(ctx, endPause); err != nil {
			return err
		}
	}
	if err == nil {
		err = fmt.Errorf("container %s does not end; look at it with: %s inspect %s", name, p.engine.Name, name)
	}
	return err
}

// isRetryable reports whether a repeated call may succeed: there was no error, or the engine has refused the call. An engine
// that does not answer or is missing is not called again.
func isRetryable(err error) bool {
	_, refused := errors.AsType[*engine.CallError](err)
	return err == nil || refused
}

// cleanUpLimit is the time limit for clean-up after a failed Open, which needs several calls.
const cleanUpLimit = 2 * engine.CallLimit

// cleanUp returns a context for removing what was created with ctx, even after ctx has ended.
func cleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), cleanUpLimit, errors.New("the engine does not answer"))
}

// containerExists reports whether a running container of that name exists or, with all, one in any state.
func (p *Provider) containerExists(ctx context.Context, name string, all bool) (bool, error) {
	args := []string{"ps", "--filter", "name=^" + name + "$", "--format", "{{.Names}}"}
	if all {
		args = append(args, "--all")
	}
	out, err := p.call(ctx, args...)
	return strings.TrimSpace(out) != "", err
}

// quietLimit is the time without a frame from a command after which its container is checked.
const quietLimit = 15 * time.Second

var errMissedEnd = errors.New("its container has ended, and the engine's client has not noticed")

// watch stops a client that would wait forever: for a container that has ended without the engine noticing (this happens
// with gVisor below docker), or for an engine that does not answer. It returns when client is done.
func (b *box) watch(client context.Context, active *atomic.Bool, stop context.CancelCauseFunc) {
	for ended := false; ; {
		if retry.Sleep(client, b.provider.timeouts.quiet) != nil {
			return
		}
		switch {
		case active.Swap(false):
			ended = false
		case ended: // the client had time to deliver the last frames
			stop(errMissedEnd)
			return
		default:
			var err error
			if ended, err = b.hasEnded(client); !isRetryable(err) && !active.Load() {
				stop(fmt.Errorf("%w: %w", sandboxes.ErrUnavailable, err))
				return
			}
		}
	}
}

// hasEnded reports whether the container certainly does not run.
func (b *box) hasEnded(ctx context.Context) (bool, error) {
	st, err := b.provider.state(ctx, b.name)
	if err == nil {
		return !st.Running, nil
	}
	there, err := b.provider.containerExists(ctx, b.name, true)
	return err == nil && !there, err
}

// isRemoved reports whether the engine answers that no such container exists.
func (b *box) isRemoved(ctx context.Context) bool {
	there, err := b.provider.containerExists(ctx, b.name, true)
	return err == nil && !there
}
