package claim

import "golang.org/x/sys/unix"

// machineIDs returns the machine's ID.
func machineIDs() []string {
	id, err := unix.Sysctl("kern.uuid")
	if err != nil {
		return nil
	}
	return []string{id}
}

// uptimeClock is the clock of uptime. On macOS, CLOCK_MONOTONIC also runs while the machine sleeps.
const uptimeClock = unix.CLOCK_UPTIME_RAW
