//go:build linux && !amd64 && !arm64

package seccomp

// auditArch is 0: the filter does not support this architecture, so there is no sandbox.
const auditArch = 0

const otherABI = 0

func forbiddenHere() []uint32 { return nil }

func rulesHere() []Rule { return nil }
