package supervisor

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Assume makes this process another user, in no group but its own. Only root can; it cancels the signal at a parent's death.
func Assume(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave all groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("become group %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("become user %d: %w", uid, err)
	}
	return nil
}

// DropBounding keeps every capability from the programs that the calling thread starts. Without privileged, a user who has none
// to give up is no error.
func DropBounding(privileged bool) error {
	for c := uintptr(0); c <= 63; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) && !privileged {
			break // the kernel knows no more, or the user has none
		}
		if err != nil {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	return nil
}
