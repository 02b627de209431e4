package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilter interprets the filter's program like the kernel.
func TestFilter(t *testing.T) {
	t.Parallel()
	if auditArch == 0 {
		t.Fatal("there is no filter for this architecture")
	}
	const allow = unix.SECCOMP_RET_ALLOW
	eperm, enosys := refusal(unix.EPERM), refusal(unix.ENOSYS)
	for _, tt := range []struct {
		name string
		arch uint32
		call uint32
		args [6]uint64
		want uint32
	}{
		{"read", auditArch, unix.SYS_READ, [6]uint64{}, allow},
		{"another architecture", auditArch ^ 1, unix.SYS_READ, [6]uint64{}, unix.SECCOMP_RET_KILL_PROCESS},
		{"mount", auditArch, unix.SYS_MOUNT, [6]uint64{}, eperm},
		{"thread", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"namespace", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_NEWUSER}, eperm},
		{"clone3", auditArch, unix.SYS_CLONE3, [6]uint64{}, enosys},
		{"unshare files", auditArch, unix.SYS_UNSHARE, [6]uint64{unix.CLONE_FILES}, allow},
		{"terminal size", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, allow},
		{"type", auditArch, unix.SYS_IOCTL, [6]uint64{0, 1<<32 | unix.TIOCSTI}, eperm},
		{"create", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT, 0o644}, allow},
		{"create setuid", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT, 0o4755}, eperm},
		{"unnamed setuid", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o4755}, eperm},
		{"unnamed setuid, read and write", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR | unix.O_EXCL, 1<<32 | 0o4711}, eperm},
		{"unnamed", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o755}, allow},
		{"openat2", auditArch, unix.SYS_OPENAT2, [6]uint64{}, enosys},
		{"setuid by fchmod", auditArch, unix.SYS_FCHMOD, [6]uint64{0, 0o4755}, eperm},
		{"setuid by fchmodat", auditArch, unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o4755}, eperm},
		{"setuid by fchmodat2", auditArch, unix.SYS_FCHMODAT2, [6]uint64{0, 0, 0o4755}, eperm},
		{"setuid by mknodat", auditArch, unix.SYS_MKNODAT, [6]uint64{0, 0, unix.S_IFREG | 0o4755}, eperm},
		{"open folder", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_DIRECTORY, 0o4755}, allow},
		{"mode without create", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, 0, 0o4755}, allow},
		{"setgid folder", auditArch, unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o2775}, allow},
		{"inet", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, allow},
		{"netlink", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK}, allow},
		{"vsock", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}, refusal(unix.EAFNOSUPPORT)},
		{"pair", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX}, allow},
		{"limits of the first", auditArch, unix.SYS_PRLIMIT64, [6]uint64{1}, eperm},
		{"own limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{0}, allow},
		{"lease", auditArch, unix.SYS_FCNTL, [6]uint64{3, unix.F_SETLEASE, unix.F_WRLCK}, eperm},
		{"lock", auditArch, unix.SYS_FCNTL, [6]uint64{3, unix.F_SETLK, 0}, allow},
		{"newest", auditArch, lastKnown, [6]uint64{}, allow},
		{"newer", auditArch, lastKnown + 1, [6]uint64{}, enosys},
		{"other ABI", auditArch, 0x40000000, [6]uint64{}, enosys},
	} {
		if got := interpret(t, program(nil), tt.arch, tt.call, tt.args); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// interpret runs a program that uses only the filter's instructions.
func interpret(t *testing.T, p []unix.SockFilter, arch, call uint32, args [6]uint64) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch in.K {
			case offsetCall:
				a = call
			case offsetArch:
				a = arch
			default:
				a = uint32(args[(in.K-offsetArgs)/8])
			}
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ:
			yes = a == in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JGT:
			yes = a > in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET:
			yes = a&in.K != 0
		default:
			t.Fatalf("instruction %d is %#x", pc, in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the program has no end")
	return 0
}
