package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// runInit is the container's first process. It runs until the engine ends the container. With a socket it forwards the
// commands' connections to the egress proxy, and the container ends if that fails; with "tunnel" another call forwards
// them.
func runInit(ctx context.Context, args []string) error {
	conceal()
	startThreads()
	go reapOrphans(ctx)
	socket := args
	if len(args) >= 2 && args[0] == Home {
		socket = args[2:]
		if err := copyHome(HomeLayer, args[1]); err != nil {
			return fmt.Errorf("copy the home that setup has filled: %w", err)
		}
	}
	if len(socket) == 0 || socket[0] == Tunnel {
		if len(socket) == 0 { // the tunnel itself reports when it is ready
			if err := declareReady(); err != nil {
				return err
			}
		}
		for ctx.Err() == nil {
			_ = unix.Pause()
		}
		return context.Cause(ctx)
	}
	return run(ctx, forward.Config{Socket: socket[0]}, declareReady)
}

func run(ctx context.Context, c forward.Config, ready func() error) error {
	f, err := forward.New(ctx, c)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Run(ctx)
}

// reapPause is the maximum lifetime of a zombie.
const reapPause = time.Second

// reapOrphans reaps the first process's children: orphans of killed helpers, and of commands that a host program has
// started.
func reapOrphans(ctx context.Context) {
	for {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if retry.Sleep(ctx, reapPause) != nil {
			return
		}
	}
}

func declareReady() error {
	if err := os.WriteFile(readyFile, nil, 0o444); err != nil {
		return fmt.Errorf("declare that commands may start: %w", err)
	}
	return nil
}

// conceal protects this process's memory, files and environment from other processes of the same user.
func conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
