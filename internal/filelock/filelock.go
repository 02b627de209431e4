// Package filelock provides file locks between goroutines and processes. The kernel releases the locks of a
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
func Lock(ctx context.Context, path string) (unlock func(), err error) { return lock(ctx, path, Try) }

// LockShared is Lock for a lock that several may hold at the same time.
func LockShared(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, TryShared)
}

func lock(ctx context.Context, path string, try func(*os.File) (bool, error)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := wait(ctx, f, try); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// Wait waits for the lock on an open file. Closing the file releases it.
func Wait(ctx context.Context, f *os.File) error { return wait(ctx, f, Try) }

func wait(ctx context.Context, f *os.File, try func(*os.File) (bool, error)) error {
	for pause := shortest; ; pause = min(2*pause, longest) {
		if locked, err := try(f); locked || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Try locks an open file, and reports false if somebody else holds a lock on it. Closing the file releases the lock.
func Try(f *os.File) (locked bool, err error) { return try(f, unix.LOCK_EX) }

// TryShared is Try for a lock that several may hold at the same time.
func TryShared(f *os.File) (locked bool, err error) { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) (locked bool, err error) {
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
