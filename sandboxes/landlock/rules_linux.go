package landlock

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/seccomp"
)

// minABI is the required version of Landlock: since 6 it restricts signals and abstract sockets.
const minABI = 6

// checkSupport explains in one line, with a fix, why this host cannot restrict commands; nil if it can.
func checkSupport() error {
	const instead = "choose native, docker or podman"
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("this kernel has Landlock switched off: start it with lsm=landlock,… among its parameters, or %s", instead)
	case err != nil:
		return fmt.Errorf("this kernel, or the container that ralph runs in, has no Landlock (%w): it needs Linux 6.12, or %s",
			err, instead)
	case abi < minABI:
		return fmt.Errorf("this kernel has Landlock ABI %d, and %d is needed: run Linux 6.12 or newer, or %s", abi, minABI, instead)
	case !seccomp.Supported():
		return fmt.Errorf("ralph has no system call filter for this architecture: %s", instead)
	}
	return nil
}

// restrict applies the access rules permanently to all threads of this process and everything that it executes and starts.
func (p *plan) restrict() error {
	readFiles, readDirs := split(p.Read)
	writeFiles, writeDirs := split(p.Write)
	rules := []landlock.Rule{
		landlock.ROFiles(readFiles...), landlock.RODirs(append(readDirs, "/proc")...),
		landlock.RWFiles(writeFiles...), landlock.RWDirs(writeDirs...).WithRefer(),
		// The devices that give access only to a process's own data.
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
	}
	for _, port := range p.Ports {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	if err := landlock.V6.Restrict(rules...); err != nil {
		return fmt.Errorf("apply the access rules: %w", err)
	}
	return nil
}

// split separates files from folders. No command can swap them: no path is below a writable folder.
func split(paths []string) (files, dirs []string) {
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		} else {
			files = append(files, path)
		}
	}
	return files, dirs
}
