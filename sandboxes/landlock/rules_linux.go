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

// minABI is the version of Landlock that is needed: it restricts signals and abstract sockets from 6 on.
const minABI = 6

// usable reports, in one line with a remedy, why this host cannot restrict commands.
func usable() error {
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
		return fmt.Errorf("there is no filter over system calls for this architecture: %s", instead)
	}
	return nil
}

// restrict applies the access rules to all threads of this process, and to all that it becomes and starts, for good.
func (p *plan) restrict() error {
	readFiles, readDirs := split(p.Read)
	writeFiles, writeDirs := split(p.Write)
	rules := []landlock.Rule{
		landlock.ROFiles(readFiles...), landlock.RODirs(append(readDirs, "/proc")...),
		landlock.RWFiles(writeFiles...), landlock.RWDirs(writeDirs...).WithRefer(),
		// The devices that nothing but a process's own data goes through.
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

// split separates files from folders. No command can replace them: no path is below a folder that may be written.
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
