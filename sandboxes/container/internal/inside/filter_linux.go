package inside

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/seccomp"
)

// filter installs native's system call filter for this process and its children, in addition to the engine's own profile.
// Some engines have no profile, and none refuses setuid files or vsock sockets to the host.
func filter() error {
	if !seccomp.Supported() {
		return nil // only the engine's own profile applies
	}
	runtime.LockOSThread() // the filter needs no_new_privs of the calling thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return seccomp.Install()
}
