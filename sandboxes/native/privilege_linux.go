package native

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/seccomp"
	"github.com/ralph-pool/ralph/sandboxes/supervisor"
)

// needed are the capabilities, over the sandbox's own namespaces only, with which the init process builds the sandbox. It
// keeps none.
func needed() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_SETUID, unix.CAP_SETGID,
		unix.CAP_DAC_OVERRIDE, // overlayfs works in a folder that is closed to all
	}
}

// dropPrivileges gives up every capability for good, makes gaining any by a program's file impossible, and filters system
// calls. The kernel keeps all of this for each thread, so all threads do it.
func dropPrivileges(more ...seccomp.Rule) error {
	// The bounding set is for what this process starts, which the calling thread does; so it alone, and cheaply, drops it.
	if err := supervisor.DropBounding(true); err != nil {
		return err
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := new([2]unix.CapUserData)
	var pinned runtime.Pinner // the calls are made with plain numbers
	defer pinned.Unpin()
	pinned.Pin(header)
	pinned.Pin(none)
	// The ambient ones go with them.
	if _, _, errno := psx.Syscall6(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(none)), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("give up capabilities: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // the filter brings it to the other threads
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return seccomp.Install(more...)
}

// refused are calls that take memory which is in no process's count. A control group counts it; watching processes does not.
func (p *plan) refused() []seccomp.Rule {
	if !p.WatchMemory {
		return nil
	}
	return seccomp.Refuse(unix.ENOSYS, []uint32{
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
	})
}

// limitSelf sets the limits that every command inherits, from its first instruction on.
func limitSelf(pids int) error {
	// 1, not 0: with 0 the kernel still starts the host's crash handler, as the host's root, when one is set.
	core := unix.Rlimit{Cur: 1, Max: 1}
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &core, nil); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	// It counts in this user namespace only. The supervisor sets a lower limit for each command.
	n := uint64(pids + cgroup.Spare)
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &now); err == nil && n > now.Max {
		n = now.Max
	}
	processes := unix.Rlimit{Cur: n, Max: n}
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &processes, nil); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return supervisor.LimitFiles()
}

// limitWatchers leaves most file watchers to the host's user and to other sandboxes: the kernel counts them for each user
// of the host. It needs a /proc that is not covered yet.
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
