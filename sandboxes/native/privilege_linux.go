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
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// initCapabilities returns the capabilities, valid only in the sandbox's own namespaces, with which the init process builds the
// sandbox. It keeps none of them.
func initCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_SETUID, unix.CAP_SETGID,
		unix.CAP_DAC_OVERRIDE, // for overlayfs, which works in a folder with mode 0
	}
}

// dropPrivileges permanently drops all capabilities, prevents programs from gaining any, and installs the system call
// filter. All of these are attributes of a thread, so it applies them to all threads.
func dropPrivileges(more ...seccomp.Rule) error {
	// The bounding set only matters for processes started by this thread, so only this thread drops it, which is cheap.
	if err := supervisor.DropBounding(true); err != nil {
		return err
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := new([2]unix.CapUserData)
	var pinned runtime.Pinner // the raw calls get addresses as integers
	defer pinned.Unpin()
	pinned.Pin(header)
	pinned.Pin(none)
	// This also clears the ambient set.
	if _, _, errno := psx.Syscall6(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(none)), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("give up capabilities: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // the filter's installation applies it to the other threads
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return seccomp.Install(more...)
}

// memoryRules returns rules against calls that allocate memory outside any process. Control groups count it, but polling does
// not.
func (p *plan) memoryRules() []seccomp.Rule {
	if !p.WatchMemory {
		return nil
	}
	return seccomp.Refuse(unix.ENOSYS, []uint32{
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
	})
}

// limitSelf sets the limits that every command inherits from its first instruction on.
func limitSelf(pids int) error {
	// 1, not 0: with 0 the kernel still runs the host's crash handler, if configured, as root.
	core := unix.Rlimit{Cur: 1, Max: 1}
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &core, nil); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	// It counts only in this user namespace. The supervisor sets a lower limit for each command.
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

// limitWatchers limits the sandbox to a quarter of the file watchers, which the kernel counts per host user. It needs a
// /proc that is not covered yet.
func limitWatchers() {
	const share = 4
	for _, kind := range []string{"instances", "watches"} {
		text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + kind)
		if err != nil {
			continue // the kernel has no such limit
		}
		if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = os.WriteFile("/proc/sys/user/max_inotify_"+kind, []byte(strconv.Itoa(max(most/share, 1))), 0)
		}
	}
}
