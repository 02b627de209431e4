package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// steadyStarts is true: start times count from boot and never go back.
const steadyStarts = true

// maxEnvironment bounds the bytes read of one environment. The kernel's own limit is a quarter of the stack limit.
const maxEnvironment = 8 << 20

// processes lists the processes of the machine, without kernel threads.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]process, 0, len(names))
	buf := make([]byte, statSize)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := inspectInto(pid, buf)
		if isResourceError(err) {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		if err == nil && !p.kernel { // an error means that it has just ended, or may not be seen
			all = append(all, p)
		}
	}
	return all, nil
}

// statSize is enough for a process's stat, because the command in it is short.
const statSize = 1024

// inspect reads one process. It fails if there is none.
func inspect(pid int) (process, error) { return inspectInto(pid, make([]byte, statSize)) }

// inspectInto is inspect with a buffer that the caller may use again.
func inspectInto(pid int, buf []byte) (process, error) {
	n, err := readFile(procFile(pid, "stat"), buf)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parseStat(buf[:n])
}

// environment returns a process's environment as NUL-terminated entries, in buf if it fits. unsure means that the process
// is in the middle of an exec and has no environment yet.
func environment(pid int, buf []byte) (env []byte, unsure bool) {
	file := procFile(pid, "environ")
	for again := true; ; {
		buf = buf[:cap(buf)]
		n, err := readFile(file, buf)
		if err != nil {
			return buf[:0], isResourceError(err) // else not readable for us, or ended
		}
		if n == 0 {
			if midExec(pid) {
				return buf[:0], true
			}
			if again { // an exec may have ended in between
				again = false
				continue
			}
			return buf[:0], false
		}
		if n < len(buf) || n >= maxEnvironment {
			return buf[:n], false
		}
		buf = make([]byte, 4*len(buf))
	}
}

// midExec reports whether a process is in the middle of an exec: it has the new memory, but not yet the new environment.
// The kernel sets the start of the code only after it has copied arguments and environment.
func midExec(pid int) bool {
	var buf [statSize]byte
	n, err := readFile(procFile(pid, "stat"), buf[:])
	const state, startCode = 3, 26
	fields := bytes.Fields(buf[bytes.LastIndexByte(buf[:n], ')')+1 : n])
	// A thread group leader that ended before its other threads has no memory either.
	return err == nil && len(fields) > startCode-state && string(fields[startCode-state]) == "0" &&
		!bytes.ContainsAny(fields[0], "ZX")
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// readFile fills buf from the start of a file of /proc. The kernel gives all of these files in one read. It avoids os.File because
// a scan opens hundreds of files.
func readFile(name string, buf []byte) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		if n, err := unix.Read(fd, buf); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

var errStat = errors.New("unknown format of a process's stat")

// parseStat decodes /proc/PID/stat. The command in parentheses may itself contain parentheses.
func parseStat(b []byte) (process, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open {
		return process{}, errStat
	}
	pid, err := strconv.Atoi(string(b[:open-1]))
	if err != nil {
		return process{}, errStat
	}
	// Field numbers are those of proc(5), where the state is field 3.
	const state, parent, group, session, flags, threads, started = 3, 4, 5, 6, 9, 20, 22
	const kernelThread = 0x00200000 // PF_KTHREAD of linux/sched.h
	p := process{pid: pid}
	dead, alone, field := false, true, state
	for f := range bytes.FieldsSeq(b[end+1:]) {
		var v uint64
		if field != state {
			if f[0] == '-' { // only priorities and the terminal's group, unused here, may be negative
				f = []byte{'0'}
			}
			if v, err = strconv.ParseUint(string(f), 10, 64); err != nil {
				return process{}, errStat
			}
		}
		switch field {
		case state:
			dead = f[0] == 'Z' || f[0] == 'X'
		case parent:
			p.parent = int(v)
		case group:
			p.group = int(v)
		case session:
			p.session = int(v) // 0: the session began outside this container, as with "docker exec"
		case flags:
			p.kernel = v&kernelThread != 0
		case threads:
			alone = v <= 1
		case started:
			p.started = v
			p.zombie = dead && alone // else only the thread group leader has ended
			return p, nil
		}
		field++
	}
	return process{}, errStat
}

// bootID identifies this boot of the machine: start times begin anew at each boot.
func bootID() string {
	var buf [64]byte
	n, err := readFile("/proc/sys/kernel/random/boot_id", buf[:])
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(buf[:n]))
}

// awaitExit waits until the child has ended, and leaves it unreaped. With pidfds it waits in the runtime's poller and
// blocks no thread.
func awaitExit(pid int) {
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		defer func() { _ = f.Close() }()
		var ended bool
		if raw, err := f.SyscallConn(); err == nil && raw.Read(func(uintptr) bool { ended = hasEnded(pid); return ended }) == nil && ended {
			return
		}
	}
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// hasEnded reports whether the child has ended or is no longer our child.
func hasEnded(pid int) bool {
	var info unix.Siginfo // stays zero while the child runs
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err != nil && err != unix.EINTR || info.Signo != 0
}
