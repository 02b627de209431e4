package inside

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/seccomp"
)

// filter refuses this process, and all that it starts, the system calls that native refuses, on top of the engine's own
// profile. Some engines have none, and none refuses setuid files or sockets of the machine below.
func filter() error {
	if !seccomp.Supported() {
		return nil // the engine's own profile has to do
	}
	runtime.LockOSThread() // the filter needs the calling thread's no_new_privs
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return seccomp.Install()
}
