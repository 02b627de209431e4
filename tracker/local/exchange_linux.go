package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two files of a folder atomically.
func exchange(dir *os.File, a, b string) error {
	return unix.Renameat2(int(dir.Fd()), a, int(dir.Fd()), b, unix.RENAME_EXCHANGE)
}
