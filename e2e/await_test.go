package e2e

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// awaitLimit is when a test stops hoping. It is far above what anything takes, and no test depends on it.
const awaitLimit = 2 * time.Minute

// await returns when ready says so. It is the one place where tests look again and again. A look that takes long, such as one that
// starts git, is followed by a longer pause: tests that wait leave the processors to what they wait for.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	for {
		began := time.Now()
		if ready() {
			return
		}
		pause := time.NewTimer(max(5*time.Millisecond, 4*time.Since(began)))
		select {
		case <-pause.C:
		case <-limit.C:
			t.Fatalf("waited %s for %s", awaitLimit, what)
		}
	}
}

// awaitFile returns when the file exists.
func awaitFile(t testing.TB, path string) {
	t.Helper()
	await(t, path, func() bool { return exists(t, path) })
}

func exists(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
