package native

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// otherABI marks calls of the x32 ABI, which has numbers of its own.
const otherABI = 0x40000000

// forbiddenHere are further calls of this architecture.
func forbiddenHere() []uint32 {
	return []uint32{
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS_IOPL,
		unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
	}
}

// rulesHere are the older twins of rules' calls.
func rulesHere() []rule {
	suid := func(call uint32, arg int) rule {
		return rule{call: call, when: []condition{{arg, unix.BPF_JSET, unix.S_ISUID}}, errno: unix.EPERM}
	}
	return []rule{
		suid(unix.SYS_CHMOD, 1), suid(unix.SYS_CREAT, 1), suid(unix.SYS_MKNOD, 1),
		{unix.SYS_OPEN, []condition{{1, unix.BPF_JSET, unix.O_CREAT}, {2, unix.BPF_JSET, unix.S_ISUID}}, unix.EPERM},
	}
}
