package seccomp

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is a deny-list of the calls that were known when it was written. A call with a higher number fails with ENOSYS,
// as in an older kernel, so that new calls are denied by default.

// lastKnown is the newest call that was considered for the lists.
const lastKnown = unix.SYS_MSEAL

// Rule denies a system call when all its conditions hold.
type Rule struct {
	Call  uint32
	Errno unix.Errno
	When  []Condition
}

// Condition tests the lower 32 bits of an argument.
type Condition struct {
	Arg  int    // index, from 0
	Test uint16 // unix.BPF_JSET: any of these bits; unix.BPF_JEQ: this value
	K    uint32
}

// Bits is the condition that an argument has any of the bits k set.
func Bits(arg int, k uint32) Condition { return Condition{arg, unix.BPF_JSET, k} }

// Is is the condition that an argument equals k.
func Is(arg int, k uint32) Condition { return Condition{arg, unix.BPF_JEQ, k} }

// Refuse returns rules that deny the calls under the same conditions.
func Refuse(errno unix.Errno, calls []uint32, when ...Condition) (rules []Rule) {
	for _, call := range calls {
		rules = append(rules, Rule{call, errno, when})
	}
	return rules
}

// Supported reports whether the filter supports this architecture.
func Supported() bool { return auditArch != 0 }

// Install applies the filter, with the extra rules, to all threads of this process and to all processes that it starts. It
// cannot be removed. The process needs no_new_privs or CAP_SYS_ADMIN.
func Install(extra ...Rule) error {
	if !Supported() {
		return fmt.Errorf("filter system calls: there is no filter for %s", runtime.GOARCH)
	}
	p := program(extra)
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("filter system calls: thread %d has another filter", thread)
	}
	return nil
}

// namespaces are the flags of clone and unshare that create namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// createFlags are the flags of open for which its mode argument matters. O_TMPFILE includes the bit of O_DIRECTORY.
const createFlags = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// base returns the rules of every filter.
func base() []Rule {
	rules := slices.Concat(
		Refuse(unix.EPERM, slices.Concat(forbidden(), forbiddenHere())),
		// A filter cannot read their arguments in memory. Programs fall back to older calls.
		Refuse(unix.ENOSYS, []uint32{
			unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		}),
		[]Rule{
			{unix.SYS_CLONE, unix.EPERM, []Condition{Bits(0, namespaces)}},
			{unix.SYS_UNSHARE, unix.EPERM, []Condition{Bits(0, namespaces|unix.CLONE_NEWTIME)}},
			// TIOCSTI injects input into a terminal that others read, TIOCLINUX pastes into the console.
			{unix.SYS_IOCTL, unix.EPERM, []Condition{Is(1, unix.TIOCSTI)}},
			{unix.SYS_IOCTL, unix.EPERM, []Condition{Is(1, unix.TIOCLINUX)}},
			{unix.SYS_PRLIMIT64, unix.EPERM, []Condition{Is(0, 1)}}, // the limits of the init process
			// Another process that opens a file with a lease blocks for most of a minute, for example another run that
			// shares the history.
			{unix.SYS_FCNTL, unix.EPERM, []Condition{Is(1, unix.F_SETLEASE)}},
			// A setuid program in the worktree would run as its owner when anybody on the host starts it.
			{unix.SYS_FCHMOD, unix.EPERM, []Condition{Bits(1, unix.S_ISUID)}},
			{unix.SYS_FCHMODAT, unix.EPERM, []Condition{Bits(2, unix.S_ISUID)}},
			{unix.SYS_FCHMODAT2, unix.EPERM, []Condition{Bits(2, unix.S_ISUID)}},
			{unix.SYS_MKNODAT, unix.EPERM, []Condition{Bits(2, unix.S_ISUID)}},
			{unix.SYS_OPENAT, unix.EPERM, []Condition{Bits(2, createFlags), Bits(3, unix.S_ISUID)}},
		})
	return append(rules, rulesHere()...)
}

// forbidden returns calls that no build needs: they inspect other processes, change the machine, mount, load code into the
// kernel, or were often used to escape from sandboxes.
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

// families are the allowed address families. Others, such as AF_VSOCK, are not confined to the network namespace.
func families() []uint32 { return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} }

// Offsets of fields in struct seccomp_data.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// program compiles the filter. Each part expects the call's number in the accumulator and leaves it there.
func program(extra []Rule) []unix.SockFilter {
	p := []unix.SockFilter{
		load(offsetArch), jump(unix.BPF_JEQ, auditArch, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetCall), jump(unix.BPF_JGT, lastKnown, 0, 1), answer(refusal(unix.ENOSYS)),
	}
	if otherABI != 0 {
		p = append(p, jump(unix.BPF_JSET, otherABI, 0, 1), answer(refusal(unix.ENOSYS)))
	}
	for _, r := range slices.Concat(base(), extra) {
		p = append(p, r.program()...)
	}
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p = append(p, allowValues(call, families())...)
	}
	return append(p, answer(unix.SECCOMP_RET_ALLOW))
}

func (r Rule) program() []unix.SockFilter {
	if len(r.When) == 0 {
		return []unix.SockFilter{jump(unix.BPF_JEQ, r.Call, 0, 1), answer(refusal(r.Errno))}
	}
	// Each condition is a load and a test. Then follow the answer and, because arguments were loaded, a reload of the call's number.
	rest := 2*len(r.When) + 1
	p := []unix.SockFilter{jump(unix.BPF_JEQ, r.Call, 0, uint8(rest+1))}
	for i, c := range r.When {
		p = append(p, load(offsetArgs+8*uint32(c.Arg)), jump(c.Test, c.K, 0, uint8(2*(len(r.When)-i-1)+1)))
	}
	return append(p, answer(refusal(r.Errno)), load(offsetCall))
}

// allowValues allows a call only with one of these values as first argument.
func allowValues(call uint32, values []uint32) []unix.SockFilter {
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
