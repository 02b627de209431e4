package disk

import (
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// mostOpen is how many files the tests may have open: what looks at folders of an agent needs few.
const mostOpen = 1000

func TestMain(m *testing.M) {
	limit := unix.Rlimit{Cur: mostOpen, Max: mostOpen}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
