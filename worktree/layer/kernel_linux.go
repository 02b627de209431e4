package layer

import (
	"os"

	"golang.org/x/sys/unix"
)

// whiteout makes a whiteout, which hides a path of the lower folder. Since Linux 5.8 this needs no privileges.
func whiteout(path string) error { return unix.Mknod(path, unix.S_IFCHR, 0) }

// Boot returns an ID of this boot of the machine. After a power loss, files may be damaged.
func Boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // if unreadable, all boots look the same
	return string(id)
}
