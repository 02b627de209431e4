package claim

import "golang.org/x/sys/unix"

// machine returns the machine's ID.
func machine() []string {
	id, err := unix.Sysctl("kern.uuid")
	if err != nil {
		return nil
	}
	return []string{id}
}

// awake is the clock of uptime. On macOS, CLOCK_MONOTONIC also runs while the machine sleeps.
const awake = unix.CLOCK_UPTIME_RAW
