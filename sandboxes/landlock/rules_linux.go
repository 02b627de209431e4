package landlock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// minABI is the version of Landlock with all that is needed: signals and abstract sockets are held back from 6 on.
const minABI = 6

const (
	readRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	showRights = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE
	// writeRights are without devices, which nobody needs to make or to send commands to, and without sockets.
	writeRights = showRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// fileRights are those that a rule about a file, and not a folder, may have.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allRights = writeRights | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices are those that only a process's own data go through.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

// usable reports why this host cannot hold commands back: in one line, with what mends it.
func usable() error {
	const instead = "choose --sandbox native, docker or podman"
	abi, err := abi()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("this kernel has Landlock switched off: start it with lsm=landlock,… among its parameters, or %s", instead)
	case err != nil:
		return fmt.Errorf("this kernel, or the container that ralph runs in, has no Landlock (%w): it needs Linux 6.12, or %s", err, instead)
	case abi < minABI:
		return fmt.Errorf("this kernel has Landlock ABI %d, and %d is needed: run Linux 6.12 or newer, or %s", abi, minABI, instead)
	case !native.Filterable():
		return fmt.Errorf("there is no filter over system calls for this architecture: %s", instead)
	}
	if err := looks(); err != nil {
		return fmt.Errorf("the container that ralph runs in does not let it look at its own commands (%w): "+
			"start it with --cap-add SYS_PTRACE, run ralph outside, or %s", err, instead)
	}
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if text := strings.TrimSpace(string(scope)); err == nil && text != "0" && text != "1" && os.Getuid() != 0 {
		return fmt.Errorf("kernel.yama.ptrace_scope is %s, and ralph has to look at its own commands: "+
			"sudo sysctl -w kernel.yama.ptrace_scope=1, or %s", text, instead)
	}
	return nil
}

// looks tries, on this process itself, the calls with which the helper looks at a command.
func looks() error {
	process, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer func() { _ = unix.Close(process) }()
	fd, err := unix.PidfdGetfd(process, process, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	_ = unix.Close(fd)
	var from, to [1]byte
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(1)
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from[0])), Len: 1}}
	if _, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0); err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	return nil
}

// abi is the kernel's version of Landlock.
func abi() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// restrict puts the calling thread, and everything it becomes and starts, below the rules for good.
func (p *plan) restrict() error {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: allRights,
		// No port is allowed: the helper connects and binds in the command's place.
		Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP,
		Scoped:             unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}
	// What comes after these fields is younger than minABI.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("make access rules: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	for _, rule := range []struct {
		paths  []string
		rights uint64
	}{{p.Read, showRights}, {p.Write, writeRights}, {[]string{"/proc"}, readRights}, {devices(), deviceRights}} {
		for _, path := range rule.paths {
			if err := allow(int(fd), path, rule.rights); err != nil {
				return fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("go below the access rules: %w", errno)
	}
	return nil
}

// allow adds a rule about a path, which is no link.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
