package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// otherABI is the bit that marks calls of the x32 ABI, which have their own numbers.
const otherABI = 0x40000000

// forbiddenHere returns further forbidden calls of this architecture.
func forbiddenHere() []uint32 {
	return []uint32{
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS_IOPL,
		unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
	}
}

// rulesHere returns rules for older equivalents of the calls in base.
func rulesHere() []Rule {
	return []Rule{
		{unix.SYS_CHMOD, unix.EPERM, []Condition{Bits(1, unix.S_ISUID)}},
		{unix.SYS_CREAT, unix.EPERM, []Condition{Bits(1, unix.S_ISUID)}},
		{unix.SYS_MKNOD, unix.EPERM, []Condition{Bits(1, unix.S_ISUID)}},
		{unix.SYS_OPEN, unix.EPERM, []Condition{Bits(1, createFlags), Bits(2, unix.S_ISUID)}},
	}
}
