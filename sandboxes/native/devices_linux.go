package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// deviceNames are the devices inside: nothing but a process's own data goes through them.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// pickDevices opens mounts of the host's device files. Inside there are no others, and no process may make one.
func pickDevices() (map[string]*os.File, error) {
	mounts := make(map[string]*os.File)
	for _, name := range deviceNames() {
		mount, err := copyMount("/dev/" + name)
		if errors.Is(err, fs.ErrNotExist) && name == "tty" {
			continue
		}
		if err != nil {
			return mounts, fmt.Errorf("show /dev/%s: %w", name, err)
		}
		mounts[name] = mount
	}
	return mounts, nil
}

// placeDevices fills /dev, with pseudo-terminals of the sandbox's own.
func placeDevices(mounts map[string]*os.File) error {
	for name, mount := range mounts {
		path := "/dev/" + name
		if err := makePlace(path, true); err != nil {
			return err
		}
		if err := attach(int(mount.Fd()), path); err != nil {
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
