// Package filelock waits for exclusive locks on files, among goroutines and processes. The kernel releases the lock of a
// process that dies. Everything here is safe for concurrent use.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/retry"
)

// The pauses between two attempts: they double.
const (
	shortest = time.Millisecond
	longest  = 20 * time.Millisecond
)

// Lock waits for the lock on the file at the path, which it makes if there is none. The file itself stays: removing it would
// let two holders in. An error says what was locked.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := Wait(ctx, f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// Wait waits for the lock on an open file. Closing the file releases it.
func Wait(ctx context.Context, f *os.File) error {
	for pause := shortest; ; pause = min(2*pause, longest) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
