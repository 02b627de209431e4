package native

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzDecodeEvent(f *testing.F) {
	for _, seed := range []string{
		"", "p", "p{}", `p{"id":1,"kind":"exited","code":3}`, `p{"id":1,"kind":"refused","cause":"not-found","error":"x"}`,
		`f{}`, `p{"id":-1}`, `p{"id":1e99}`, `p[]`, "p" + strings.Repeat("[", 20000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		e, err := decodeEvent(packet)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		if len(e.Error) > maxPacket {
			t.Errorf("%d bytes of error are kept", len(e.Error))
		}
		_ = exitOf(e)
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (sh) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1 1"))
	f.Add([]byte("7 (a) b) (c) Z 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99"))
	f.Add([]byte("7 () "))
	f.Add([]byte("("))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if p, err := parseStat(stat); err != nil && p != (process{}) {
			t.Errorf("an error and a process: %+v", p)
		}
	})
}

func FuzzParseAnonymous(f *testing.F) {
	f.Add([]byte("Name:\tx\nRssAnon:\t     100 kB\nVmSwap:\t 1 kB\n"))
	f.Add([]byte("RssAnon:\nVmSwap: x\nRssAnon: 99999999999999999999 kB"))
	f.Fuzz(func(t *testing.T, status []byte) {
		if n := parseAnonymous(status); n < 0 {
			t.Errorf("%d bytes", n)
		}
	})
}

// TestFilter runs the filter's program as the kernel would.
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
		{"mode without create", auditArch, unix.SYS_OPENAT, [6]uint64{0, 0, 0, 0o4755}, allow},
		{"setgid folder", auditArch, unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o2775}, allow},
		{"inet", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, allow},
		{"netlink", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK}, allow},
		{"vsock", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}, refusal(unix.EAFNOSUPPORT)},
		{"pair", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX}, allow},
		{"limits of the first", auditArch, unix.SYS_PRLIMIT64, [6]uint64{1}, eperm},
		{"own limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{0}, allow},
		{"newest", auditArch, lastKnown, [6]uint64{}, allow},
		{"newer", auditArch, lastKnown + 1, [6]uint64{}, enosys},
		{"other ABI", auditArch, 0x40000000, [6]uint64{}, enosys},
	} {
		if got := interpret(t, program(), tt.arch, tt.call, tt.args); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// interpret runs a program of the few instructions that the filter has.
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
