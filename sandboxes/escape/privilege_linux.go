package escape

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func privilegeAttacks() []Attack {
	return []Attack{
		{Name: "privileges/having or gaining any", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			r.attack("privileges")
			r.Works()
			r.checkUnchanged()
		}},
		{Name: "privileges/system calls into the kernel's depths", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			r.attack("calls")
			r.Works()
			r.checkUnchanged()
		}},
		{Name: "privileges/settings of the machine", Brief: true, Make: func(s *Suite) {
			r := s.open(nil)
			r.attack("settings")
			r.Works()
			r.checkUnchanged()
		}},
	}
}

func attackPrivileges(a *attempt, _ []string) {
	want := map[string]string{
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		a.report("its own status:", err)
		return
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if must, ok := want[name]; ok && strings.TrimSpace(value) != must {
			a.report(lines.Text(), "and not", must)
		}
	}
	if os.Getuid() == 0 || os.Geteuid() == 0 {
		a.report("it runs as root")
	} else {
		a.expectError("become root", unix.Setuid(0))
		a.expectError("become group 0", unix.Setgid(0))
	}
	kept, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) // without it, a setuid program gets its owner's user id
	for _, program := range []string{"/bin/su", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/newuidmap"} {
		var st unix.Statfs_t
		if unix.Statfs(program, &st) == nil && st.Flags&unix.ST_NOSUID == 0 && (err != nil || kept != 1) {
			a.report(program + " may change the user")
		}
	}
	if err := os.WriteFile("mine", []byte("#!/bin/sh\n"), 0o755); err == nil {
		a.expectError("make a program that runs as its owner", os.Chmod("mine", 0o755|os.ModeSetuid))
		fd, err := unix.Open("mine-too", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		a.expectError("create a program that runs as its owner", err)
		_ = unix.Close(fd)
		fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
		a.expectError("create an unnamed program that runs as its owner", err)
		_ = unix.Close(fd)
	}
}

func attackCalls(a *attempt, _ []string) {
	// If these calls were allowed, they would fail with another error: the file system type does not exist, and the file is
	// no mount point.
	here := uintptr(unsafe.Pointer(&[]byte("/proc/self/status\x00")[0]))
	kind := uintptr(unsafe.Pointer(&[]byte("no-such-type\x00")[0]))
	root := uintptr(unsafe.Pointer(&[]byte("/\x00")[0]))
	a.call("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1)
	a.call("ptrace me", unix.SYS_PTRACE, unix.PTRACE_TRACEME)
	a.call("process_vm_readv", unix.SYS_PROCESS_VM_READV, 1)
	a.call("process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, 1)
	a.call("pidfd_getfd", unix.SYS_PIDFD_GETFD, 3, 3)
	a.call("mount", unix.SYS_MOUNT, kind, here, kind)
	a.call("remount", unix.SYS_MOUNT, here, here, here, unix.MS_REMOUNT|unix.MS_BIND)
	a.call("umount", unix.SYS_UMOUNT2, here, unix.MNT_DETACH)
	a.call("pivot_root", unix.SYS_PIVOT_ROOT, here, here)
	a.call("chroot", unix.SYS_CHROOT, root)
	a.call("fsopen", unix.SYS_FSOPEN, kind)
	a.call("open_tree", unix.SYS_OPEN_TREE, 0, root, unix.OPEN_TREE_CLONE)
	a.call("move_mount", unix.SYS_MOVE_MOUNT)
	a.call("mount_setattr", unix.SYS_MOUNT_SETATTR)
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET,
		"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
	} {
		a.call("unshare "+name, unix.SYS_UNSHARE, flag)
	}
	a.cloneInto("a user namespace", unix.CLONE_NEWUSER)
	a.call("setns", unix.SYS_SETNS, 0, 0)
	a.call("clone3", unix.SYS_CLONE3)
	a.call("bpf", unix.SYS_BPF)
	a.call("perf_event_open", unix.SYS_PERF_EVENT_OPEN)
	a.call("userfaultfd", unix.SYS_USERFAULTFD)
	a.call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1)
	a.call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT)
	a.call("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID)
	a.call("add_key", unix.SYS_ADD_KEY)
	a.call("request_key", unix.SYS_REQUEST_KEY)
	a.call("init_module", unix.SYS_INIT_MODULE)
	a.call("kexec_load", unix.SYS_KEXEC_LOAD, 0, 99)
	a.call("swapon", unix.SYS_SWAPON)
	a.call("syslog", unix.SYS_SYSLOG, 3)
	a.call("reboot", unix.SYS_REBOOT) // without its magic numbers
	a.call("sethostname", unix.SYS_SETHOSTNAME, here, ^uintptr(0))
	a.call("a call from the future", 4000)
	for name, family := range map[string]int{"vsock": unix.AF_VSOCK, "packet": unix.AF_PACKET, "alg": unix.AF_ALG, "xdp": unix.AF_XDP} {
		_, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		a.expectError("a socket of family "+name, err)
	}
	a.attackTerminal()
}

// cloneInto creates a process in a new namespace. The child exits at once.
func (a *attempt) cloneInto(what string, flag uintptr) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	if errno == 0 {
		a.report("clone into " + what)
	}
}

// attackTerminal inserts characters into a terminal's input.
func (a *attempt) attackTerminal() {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	var c byte = 'x'
	high := uint64(unix.TIOCSTI) | 1<<32 // the kernel uses only the lower half
	a.call("TIOCSTI", unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
	a.call("TIOCSTI with high bits", unix.SYS_IOCTL, uintptr(fd), uintptr(high), uintptr(unsafe.Pointer(&c)))
	a.call("TIOCLINUX", unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, uintptr(unsafe.Pointer(&c)))
}

func attackSettings(a *attempt, _ []string) {
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/sysrq", "/proc/sys/vm/swappiness",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
		"/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/usr/bin/env", "/etc/ssl/certs",
		"/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
		"/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/release_agent",
	} {
		a.writable(path)
	}
	for _, path := range []string{
		"/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/timer_list", "/proc/kallsyms", "/dev/kmsg", "/dev/mem",
		"/dev/sda", "/dev/vda", "/dev/kvm", "/dev/fuse", "/dev/net/tun",
	} {
		a.readable(path)
	}
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/proc", "/sys", "/dev", "/srv", "/opt", "/root"} {
		err := os.WriteFile(dir+"/planted", nil, 0o644)
		if dir == "/dev" && os.Getuid() == 0 {
			a.expectError("create a file in /dev, as root", err)
		} else {
			a.expectError("create a file in "+dir, err)
		}
		if err == nil {
			_ = os.Remove(dir + "/planted")
		}
	}
	// A masked file has another file mounted over it: writing to that has no effect, but the real file must not be
	// writable.
	var real, null unix.Stat_t
	if unix.Stat("/proc/sysrq-trigger", &real) == nil && unix.Stat("/dev/null", &null) == nil && real.Ino != null.Ino {
		a.writable("/proc/sysrq-trigger")
	}
	a.expectError("make a block device", unix.Mknod("block", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))))
	a.expectError("make a character device", unix.Mknod("character", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))))
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Max != unix.RLIM_INFINITY {
		a.expectError("raise its limits", unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}))
	}
	var now unix.Timeval
	a.expectError("set the clock", errors.Join(unix.Gettimeofday(&now), unix.Settimeofday(&now)))
}
