package native

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// otherABI is 0: this architecture has one numbering.
const otherABI = 0

// forbiddenHere are further calls of this architecture.
func forbiddenHere() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// rulesHere is empty: this architecture has no older twins of rules' calls.
func rulesHere() []rule { return nil }
