package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// deviceNames are the devices inside: those that only a process's own data go through.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// pickDevices opens mounts of the host's device files. The device files that exist inside are these; no process in the
// sandbox may make or open another.
func pickDevices() (map[string]int, error) {
	fds := make(map[string]int)
	for _, name := range deviceNames() {
		fd, err := copyMount("/dev/" + name)
		if errors.Is(err, fs.ErrNotExist) && name == "tty" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("show /dev/%s: %w", name, err)
		}
		fds[name] = fd
	}
	return fds, nil
}

// placeDevices furnishes /dev, with pseudo-terminals of the sandbox's own.
func placeDevices(fds map[string]int) error {
	for name, fd := range fds {
		path := "/dev/" + name
		if err := makePlace(path, true); err != nil {
			return err
		}
		if err := hang(fd, path); err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
	}
	if err := os.Mkdir("/dev/pts", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("mount pseudo-terminals: %w", err)
	}
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}
