package e2e

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// awaitLimit fails a test that waits in vain. It is far longer than anything takes, so no result depends on it.
const awaitLimit = 2 * time.Minute

// await returns when ready returns true. It is the only place in which tests poll. After a slow poll, for example one that
// starts git, it pauses longer, to leave the CPU to the process under test.
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
