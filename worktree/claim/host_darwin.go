package claim

import "golang.org/x/sys/unix"

// machine names the machine.
func machine() []string {
	id, err := unix.Sysctl("kern.uuid")
	if err != nil {
		return nil
	}
	return []string{id}
}

// awake is the clock of uptime. CLOCK_MONOTONIC goes on while the machine sleeps here.
const awake = unix.CLOCK_UPTIME_RAW
