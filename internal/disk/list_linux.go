package disk

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// list opens a folder to list it. A file of os.Root asks for the details of each entry, which takes about as long as deleting
// it. This file asks only on file systems that do not tell folders from files, and by a path that leads nowhere else.
func list(folder *os.Root) (*os.File, error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd)), nil
}
