package native

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// alternatives names alternatives where namespaces are forbidden. Native itself never falls back to weaker isolation.
const alternatives = "or choose docker, podman or sbx, or landlock, which is weaker"

// diagnose adds to a kernel error which setting forbids namespaces, and the command that allows them.
func diagnose(err error) error {
	if !isKernelRefusal(err) {
		return err
	}
	for _, c := range []struct{ file, forbids, fix string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if text, readErr := os.ReadFile(c.file); readErr == nil && strings.TrimSpace(string(text)) == c.forbids {
			return fmt.Errorf("this system forbids programs like ralph to make user namespaces: allow them with: %s, %s (%w)",
				c.fix, alternatives, err)
		}
	}
	if _, inside := os.Stat("/.dockerenv"); inside == nil || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("this kernel, or the container that ralph runs in, does not allow it; "+
			"run ralph outside the container on Linux 5.14 or newer, %s (%w)", alternatives, err)
	}
	return fmt.Errorf("the kernel does not allow it, %s (%w)", alternatives, err)
}

// isKernelRefusal reports whether an error is a refusal by the kernel, either here or, as text, in the init process.
func isKernelRefusal(err error) bool {
	refusals := []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.ENOSYS, unix.EINVAL}
	return slices.ContainsFunc(refusals, func(e unix.Errno) bool {
		return errors.Is(err, e) || e != unix.EINVAL && strings.HasSuffix(err.Error(), e.Error())
	})
}
