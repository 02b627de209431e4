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

// await returns when ready says so. It is the one place where tests look again and again.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	for !ready() {
		select {
		case <-tick.C:
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
