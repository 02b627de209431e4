package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// stay keeps the container running until the engine ends it. With a socket it leads what commands send out to the
// egress proxy; when that ends, the container does. In the place of the socket "tunnel" means that another call does that.
func stay(ctx context.Context, socket []string) error {
	conceal()
	getThreads()
	go reap(ctx)
	if len(socket) == 0 || socket[0] == insideTunnel {
		if len(socket) == 0 { // the tunnel says it otherwise
			if err := ready(); err != nil {
				return err
			}
		}
		for ctx.Err() == nil {
			_ = unix.Pause()
		}
		return context.Cause(ctx)
	}
	f, err := egress.NewForwarder(ctx, egress.ForwardConfig{Socket: socket[0]})
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Run(ctx)
}

// reapPause is how long a process that has ended may stay in the list.
const reapPause = time.Second

// reap takes away what ends as the first process's child: what a helper that was killed has left, and what a program of the
// host has started by CommandPrefix.
func reap(ctx context.Context) {
	t := time.NewTicker(reapPause)
	defer t.Stop()
	for {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

func ready() error {
	if err := os.WriteFile(readyFile, nil, 0o444); err != nil {
		return fmt.Errorf("tell that commands may start: %w", err)
	}
	return nil
}

// conceal keeps other processes of the same user from this one's memory, files and environment.
func conceal() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
