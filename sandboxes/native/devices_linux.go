package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// deviceNames returns the devices inside. They give access only to a process's own data.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// pickDevices opens mounts of the host's device files. The sandbox has no other devices, and its processes cannot create
// any.
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

// placeDevices fills /dev, with separate pseudo-terminals for the sandbox.
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
