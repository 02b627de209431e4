package native

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter over system calls. It is a list of what is refused within what was known when it was written: a call with
// a higher number is answered as by a kernel that does not have it, so that nothing new comes in unseen.

// lastKnown is the newest call that the list below was made for.
const lastKnown = unix.SYS_MSEAL

// rule refuses one call, when all its conditions hold.
type rule struct {
	call  uint32
	when  []condition
	errno unix.Errno
}

// condition is about the lower half of one argument; the kernel looks at no more of those that are tested here.
type condition struct {
	arg  int
	test uint16 // unix.BPF_JSET: any of these bits; unix.BPF_JEQ: this value
	k    uint32
}

// namespaces are the flags of clone and unshare that make new ones.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// rules are the rules of every architecture, with those of this one.
func rules() []rule {
	var out []rule
	for _, call := range slices.Concat(forbidden(), forbiddenHere()) {
		out = append(out, rule{call: call, errno: unix.EPERM})
	}
	// Programs have another way to do what these do, which the filter can look at.
	for _, call := range []uint32{
		unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	} {
		out = append(out, rule{call: call, errno: unix.ENOSYS})
	}
	bits := func(call uint32, arg int, k uint32) rule {
		return rule{call: call, when: []condition{{arg, unix.BPF_JSET, k}}, errno: unix.EPERM}
	}
	out = append(out,
		bits(unix.SYS_CLONE, 0, namespaces),
		bits(unix.SYS_UNSHARE, 0, namespaces|unix.CLONE_NEWTIME),
	)
	// What is typed into a terminal that others read, or pasted into the console.
	for _, k := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		out = append(out, rule{unix.SYS_IOCTL, []condition{{1, unix.BPF_JEQ, k}}, unix.EPERM})
	}
	// The limits of the first process are not a command's to set.
	out = append(out, rule{unix.SYS_PRLIMIT64, []condition{{0, unix.BPF_JEQ, 1}}, unix.EPERM})
	// A program in the worktree that runs as its owner, whoever starts it on the host.
	out = append(out,
		bits(unix.SYS_FCHMOD, 1, unix.S_ISUID), bits(unix.SYS_FCHMODAT, 2, unix.S_ISUID),
		bits(unix.SYS_FCHMODAT2, 2, unix.S_ISUID), bits(unix.SYS_MKNODAT, 2, unix.S_ISUID),
		rule{unix.SYS_OPENAT, []condition{{2, unix.BPF_JSET, unix.O_CREAT}, {3, unix.BPF_JSET, unix.S_ISUID}}, unix.EPERM},
	)
	return append(out, rulesHere()...)
}

// families are the only kinds of socket. Others, such as those of virtual machines, leave the network namespace.
func families() []uint32 { return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} }

// forbidden are calls that no build needs: they look into other processes, change the machine, mount, load code into
// the kernel, or have been the way into it often enough.
func forbidden() []uint32 {
	return []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP,
		unix.SYS_PIDFD_GETFD,

		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT,

		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
		unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,

		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_NFSSERVCTL, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	}
}

// Offsets in what the kernel shows a filter.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// program is the filter as the kernel takes it.
func program() []unix.SockFilter {
	p := Forbidden()
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p = append(p, only(call, families())...)
	}
	return append(p, answer(unix.SECCOMP_RET_ALLOW))
}

// program tests the call, which is loaded before and after.
func (r rule) program() []unix.SockFilter {
	// Each condition is a load and a test; then come the answer and, as arguments were loaded, the call again.
	rest := 2*len(r.when) + 1
	if len(r.when) == 0 {
		return []unix.SockFilter{jump(unix.BPF_JEQ, r.call, 0, 1), answer(refusal(r.errno))}
	}
	p := []unix.SockFilter{jump(unix.BPF_JEQ, r.call, 0, uint8(rest+1))}
	for i, c := range r.when {
		p = append(p, load(offsetArgs+8*uint32(c.arg)), jump(c.test, c.k, 0, uint8(2*(len(r.when)-i-1)+1)))
	}
	return append(p, answer(refusal(r.errno)), load(offsetCall))
}

// only allows a call with these values of its first argument.
func only(call uint32, values []uint32) []unix.SockFilter {
	p := []unix.SockFilter{jump(unix.BPF_JEQ, call, 0, uint8(len(values)+3)), load(offsetArgs)}
	for i, v := range values {
		p = append(p, jump(unix.BPF_JEQ, v, uint8(len(values)-i), 0))
	}
	return append(p, answer(refusal(unix.EAFNOSUPPORT)), load(offsetCall))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: k}
}

func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func refusal(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// installFilter puts the filter over the calling thread and everything it starts, for good.
func installFilter() error {
	if auditArch == 0 {
		return fmt.Errorf("filter system calls: there is no filter for %s", runtime.GOARCH)
	}
	p := program()
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
