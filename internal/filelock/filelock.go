// Package filelock provides exclusive file locks between goroutines and processes. The kernel releases the locks of a
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

// Pauses between attempts. They double from shortest to longest.
const (
	shortest = time.Millisecond
	longest  = 20 * time.Millisecond
)

// Lock waits for the lock on the file at path and creates the file if it does not exist. The file is never removed, because
// that would let two holders in. The error names the file.
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
