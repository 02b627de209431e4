package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOlderCalls: the older calls of this architecture cannot make setuid files either.
func TestOlderCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		call uint32
		args [6]uint64
	}{
		{unix.SYS_CHMOD, [6]uint64{0, 0o4755}},
		{unix.SYS_CREAT, [6]uint64{0, 0o4755}},
		{unix.SYS_MKNOD, [6]uint64{0, unix.S_IFREG | 0o4755}},
		{unix.SYS_OPEN, [6]uint64{0, unix.O_CREAT, 0o4755}},
		{unix.SYS_OPEN, [6]uint64{0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}},
	} {
		if got := interpret(t, program(nil), auditArch, tt.call, tt.args); got != refusal(unix.EPERM) {
			t.Errorf("call %d with %o: %#x", tt.call, tt.args, got)
		}
	}
}
