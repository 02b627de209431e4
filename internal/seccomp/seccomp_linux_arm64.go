package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// otherABI is 0: this architecture has only one ABI.
const otherABI = 0

func forbiddenHere() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

func rulesHere() []Rule { return nil }
