package landlock

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// The filter over system calls is native's, and more: there is no network, no process table and no user that is the
// sandbox's own, so what Landlock knows nothing of has to be refused by the call.

// notTCP are the bits of socket's protocol that only others than TCP have: MPTCP, SCTP and SMC connect past Landlock.
const notTCP = ^uint32(unix.IPPROTO_TCP)

// any are all bits of an argument.
const anyBit = ^uint32(0)

// fastOpen makes sending connect, past every rule about connecting.
const fastOpen = unix.MSG_FASTOPEN

// Commands of ioctl that change files which can only be read.
const (
	setFlags      = 0x40086602 // FS_IOC_SETFLAGS
	setFlags32    = 0x40046602
	setVersion    = 0x40087602 // FS_IOC_SETVERSION
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
)

// program is the filter as the kernel takes it.
func program() []unix.SockFilter {
	p := native.Forbidden()
	refuse := func(call uint32, errno unix.Errno, when ...native.Condition) {
		p = append(p, native.Refuse(call, errno, when...)...)
	}
	bits := func(arg int, k uint32) native.Condition { return native.If(arg, unix.BPF_JSET, k) }
	is := func(arg int, k uint32) native.Condition { return native.If(arg, unix.BPF_JEQ, k) }

	// Sockets: TCP, which the helper connects; questions about routes; pairs of unix sockets that can never lead elsewhere.
	refuse(unix.SYS_SOCKET, unix.EACCES, is(0, unix.AF_UNIX))
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		refuse(unix.SYS_SOCKET, unix.EACCES, is(0, family), bits(1, 0xf&^unix.SOCK_STREAM))
		refuse(unix.SYS_SOCKET, unix.EPROTONOSUPPORT, is(0, family), bits(2, notTCP))
	}
	refuse(unix.SYS_SOCKET, unix.EPROTONOSUPPORT, is(0, unix.AF_NETLINK), bits(2, anyBit)) // anything but NETLINK_ROUTE
	refuse(unix.SYS_SOCKETPAIR, unix.EACCES, bits(1, unix.SOCK_DGRAM))
	p = append(p, native.Only(unix.SYS_SOCKET, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)...)
	p = append(p, native.Only(unix.SYS_SOCKETPAIR, unix.AF_UNIX)...)
	refuse(unix.SYS_SENDTO, unix.EACCES, bits(3, fastOpen))
	refuse(unix.SYS_SENDMSG, unix.EACCES, bits(2, fastOpen))
	refuse(unix.SYS_SENDMMSG, unix.EACCES, bits(3, fastOpen))

	// Other processes of the user: their limits, their share of the machine.
	for _, call := range []uint32{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR,
	} {
		refuse(call, unix.EPERM, bits(0, anyBit))
	}
	const ioprioWhoUser = 3
	refuse(unix.SYS_SETPRIORITY, unix.EPERM, bits(1, anyBit))
	refuse(unix.SYS_SETPRIORITY, unix.EPERM, is(0, unix.PRIO_USER))
	refuse(unix.SYS_IOPRIO_SET, unix.EPERM, bits(1, anyBit))
	refuse(unix.SYS_IOPRIO_SET, unix.EPERM, is(0, ioprioWhoUser))

	// What processes of one user share by other means than files.
	for _, call := range []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	} {
		refuse(call, unix.ENOSYS)
	}
	// Files in memory are nobody's own: what is written to one, and not mapped, would not be counted.
	refuse(unix.SYS_MEMFD_CREATE, unix.ENOSYS)
	refuse(unix.SYS_MEMFD_SECRET, unix.ENOSYS)

	// What Landlock lets everybody do to a file that is the user's.
	for _, call := range []uint32{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	} {
		refuse(call, unix.EOPNOTSUPP)
	}
	for _, command := range []uint32{setFlags, setFlags32, setVersion, setAttributes} {
		refuse(unix.SYS_IOCTL, unix.EPERM, is(1, command))
	}
	for _, call := range handedOver() {
		p = append(p, native.HandOver(call)...)
	}
	return append(p, native.Allow())
}

// handedOver are the calls that the helper answers.
func handedOver() (calls []uint32) {
	for call := range answers() {
		calls = append(calls, uint32(call))
	}
	slices.Sort(calls)
	return calls
}

// filter puts the filter over the calling thread and everything it becomes and starts, for good, and sends the helper
// what its questions come through.
func filter(conn *net.UnixConn) error {
	p := program()
	fprog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	// A question that the helper has taken is given up only when its asker is killed: nothing happens twice.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	if _, _, err := conn.WriteMsgUnix([]byte{'f'}, unix.UnixRights(int(fd)), nil); err != nil {
		return fmt.Errorf("hand over the filter's questions: %w", err)
	}
	return nil
}
