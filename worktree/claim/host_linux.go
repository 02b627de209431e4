package claim

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// initialPIDs is the kernel's fixed name of the host's PID namespace.
const initialPIDs = "pid:[4026531836]"

// machineIDs returns the machine ID, and the PID namespace unless it is the host's. A container's machine ID may come from
// its image, so in a container the boot ID is added.
func machineIDs() []string {
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

// uptimeClock is the clock of uptime.
const uptimeClock = unix.CLOCK_MONOTONIC
