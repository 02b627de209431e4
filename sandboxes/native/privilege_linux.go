package native

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
)

// needed are the capabilities, over the sandbox's own namespaces only, with which the first process builds the sandbox.
// It keeps none.
func needed() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_SETUID, unix.CAP_SETGID,
	}
}

// dropPrivileges gives up every capability for good, makes gaining any by a program's file impossible, and filters
// system calls. It is for the calling thread, and what that becomes and starts.
func dropPrivileges() error {
	for c := uintptr(0); c <= 63; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel knows no more
		}
		if err != nil {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return installFilter()
}

// limitSelf sets the limits that everything inside inherits, from its first instruction on.
func limitSelf(pids int) error {
	// 1, not 0: with 0 the kernel still starts the host's crash handler, as the host's root, when one is set.
	core := unix.Rlimit{Cur: 1, Max: 1}
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &core, nil); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	// Counted in this user namespace only. Commands get less, once they have started; see limitCommand.
	n := uint64(pids + cgroup.Spare)
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &now); err == nil && n > now.Max {
		n = now.Max
	}
	processes := unix.Rlimit{Cur: n, Max: n}
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &processes, nil); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}

// limitWatchers leaves to the host's user, and to other sandboxes, the most of what watching files takes: the kernel
// counts it for each user of the host. It needs a /proc that is not covered yet.
func limitWatchers() {
	const share = 4
	for _, kind := range []string{"instances", "watches"} {
		text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + kind)
		if err != nil {
			continue // a kernel without it
		}
		if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = os.WriteFile("/proc/sys/user/max_inotify_"+kind, []byte(strconv.Itoa(max(most/share, 1))), 0)
		}
	}
}

// loopbackUp makes 127.0.0.1 work.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start the loopback network: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	ifreq, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifreq.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifreq); err != nil {
		return fmt.Errorf("start the loopback network: %w", err)
	}
	return nil
}
