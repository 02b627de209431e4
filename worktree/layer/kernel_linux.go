package layer

import (
	"os"

	"golang.org/x/sys/unix"
)

// whiteout hides a path of the lower folder. An ordinary user can make one since Linux 5.8.
func whiteout(path string) error { return unix.Mknod(path, unix.S_IFCHR, 0) }

// Boot names this start of the machine: after a power loss files may be damaged.
func Boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, all starts are one
	return string(id)
}
