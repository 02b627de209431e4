package disk

import (
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// mostOpen limits the open files of the tests: code that reads an agent's folders needs few.
const mostOpen = 1000

func TestMain(m *testing.M) {
	limit := unix.Rlimit{Cur: mostOpen, Max: mostOpen}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
