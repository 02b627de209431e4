package landlock

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/seccomp"
)

// ioctl commands that modify files which are open only for reading.
const (
	setFlags      = 0x40086602 // FS_IOC_SETFLAGS
	setFlags32    = 0x40046602
	setVersion    = 0x40087602 // FS_IOC_SETVERSION
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
)

// filterRules returns the system call rules beyond those of every sandbox. This sandbox has no network, PID or user
// namespace, so calls that Landlock does not check must be refused.
func filterRules() []seccomp.Rule {
	const (
		all           = ^uint32(0)
		notStream     = 0xf &^ unix.SOCK_STREAM
		notTCP        = ^uint32(unix.IPPROTO_TCP) // multipath TCP, SCTP and SMC bypass Landlock
		upperProtocol = 31                        // TCP_ULP, which turns a TCP socket into another kind
		ioprioWhoUser = 3
	)
	is, bits := seccomp.Is, seccomp.Bits
	one := func(errno unix.Errno, call uint32, when ...seccomp.Condition) []seccomp.Rule {
		return []seccomp.Rule{{Call: call, Errno: errno, When: when}}
	}
	rules := slices.Concat(
		// Sockets: allow only TCP for connecting, queries of routes, and socket pairs.
		one(unix.EACCES, unix.SYS_SOCKET, is(0, unix.AF_UNIX)),
		one(unix.EPROTONOSUPPORT, unix.SYS_SOCKET, is(0, unix.AF_NETLINK), bits(2, all)), // all but NETLINK_ROUTE
		one(unix.EACCES, unix.SYS_SOCKETPAIR, bits(1, unix.SOCK_DGRAM)),
		// Without bind, listen chooses a port on every interface, and so bypasses the rules for bind.
		one(unix.EACCES, unix.SYS_LISTEN),
		one(unix.EPERM, unix.SYS_SETSOCKOPT, is(1, unix.IPPROTO_TCP), is(2, upperProtocol)),
		// TCP fast open connects in a send call, and so bypasses the rules for connect.
		one(unix.EACCES, unix.SYS_SENDTO, bits(3, unix.MSG_FASTOPEN)),
		one(unix.EACCES, unix.SYS_SENDMSG, bits(2, unix.MSG_FASTOPEN)),
		one(unix.EACCES, unix.SYS_SENDMMSG, bits(3, unix.MSG_FASTOPEN)),

		// Other processes of the user: their limits and their share of the machine.
		seccomp.Refuse(unix.EPERM, []uint32{
			unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR,
		}, bits(0, all)),
		seccomp.Refuse(unix.EPERM, []uint32{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET}, bits(1, all)),
		one(unix.EPERM, unix.SYS_SETPRIORITY, is(0, unix.PRIO_USER)),
		one(unix.EPERM, unix.SYS_IOPRIO_SET, is(0, ioprioWhoUser)),

		// Memory and queues shared by processes of one user. Files in memory would not be counted.
		seccomp.Refuse(unix.ENOSYS, []uint32{
			unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
			unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
			unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
		}),
		// Attributes of the user's files that Landlock does not check and programs do not need.
		seccomp.Refuse(unix.EOPNOTSUPP, []uint32{
			unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
		}),
	)
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		rules = slices.Concat(rules,
			one(unix.EACCES, unix.SYS_SOCKET, is(0, family), bits(1, notStream)),
			one(unix.EPROTONOSUPPORT, unix.SYS_SOCKET, is(0, family), bits(2, notTCP)))
	}
	for _, command := range []uint32{setFlags, setFlags32, setVersion, setAttributes} {
		rules = append(rules, one(unix.EPERM, unix.SYS_IOCTL, is(1, command))...)
	}
	return rules
}
