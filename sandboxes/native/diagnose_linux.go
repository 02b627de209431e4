package native

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// instead is what is offered where namespaces are closed. There is no weaker wall under the name of native.
const instead = "or choose --sandbox docker, podman or sbx, or the weaker --sandbox landlock"

// diagnose adds to an error of the kernel what closes the way, and the command that opens it.
func diagnose(err error) error {
	closed := []struct{ file, value, mend string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	}
	if !refused(err) {
		return err
	}
	for _, c := range closed {
		if text, readErr := os.ReadFile(c.file); readErr == nil && strings.TrimSpace(string(text)) == c.value {
			return fmt.Errorf("this system keeps user namespaces from programs like ralph: allow them with: %s, %s (%w)",
				c.mend, instead, err)
		}
	}
	if _, inside := os.Stat("/.dockerenv"); inside == nil || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("this kernel, or the container that ralph runs in, does not allow it; "+
			"run ralph outside the container on Linux 5.14 or newer, %s (%w)", instead, err)
	}
	return fmt.Errorf("the kernel does not allow it, %s (%w)", instead, err)
}

// refused reports an error that says no, here or, in words, from the first process.
func refused(err error) bool {
	for _, e := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.ENOSYS, unix.EINVAL} {
		if errors.Is(err, e) || e != unix.EINVAL && strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}
