package claim

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// initialPIDs is the kernel's fixed name of the machine's own PID namespace.
const initialPIDs = "pid:[4026531836]"

// machine names the machine, and the PID namespace where it is not the machine's own. A container's machine id may be
// its image's, so that there the boot counts, too.
func machine() []string {
	var parts []string
	id, err := os.ReadFile("/etc/machine-id")
	if err == nil && len(strings.TrimSpace(string(id))) > 0 {
		parts = append(parts, strings.TrimSpace(string(id)))
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if len(parts) > 0 && err == nil && space == initialPIDs {
		return parts
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return append(parts, space, strings.TrimSpace(string(boot)))
}

// awake is the clock of uptime.
const awake = unix.CLOCK_MONOTONIC
