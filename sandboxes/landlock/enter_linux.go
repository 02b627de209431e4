package landlock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// enter puts this process, more exactly its one thread that survives the last step, below the rules, and becomes the
// command. It returns only when that is impossible.
func enter(conn *net.UnixConn) error {
	o, err := receive(conn)
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	p := &o.Plan
	if err := p.limit(); err != nil {
		return err
	}
	if err := p.become(); err != nil {
		return err
	}
	if err := p.restrict(); err != nil {
		return err
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what the command must not keep: %w", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return tell(conn, refusal(fmt.Errorf("its folder: %w", err)))
	}
	path, err := native.Lookup(o.Argv[0], o.Env)
	if err != nil {
		return tell(conn, refusal(err))
	}
	if err := filter(conn); err != nil {
		return err
	}
	err = unix.Exec(path, o.Argv, o.Env)
	return tell(conn, refusal(explain(err, path)))
}

// refusal is a report of a command that could not be started.
func refusal(err error) report {
	r := report{Refused: err.Error()}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		r.Cause = causeNotFound
	case errors.Is(err, fs.ErrPermission):
		r.Cause = causePermission
	}
	return r
}

// explain says in words why the system would not start a program.
func explain(err error, path string) error {
	_, statErr := os.Stat(path)
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w; long text belongs on its standard input", err)
	case errors.Is(err, unix.EACCES) && statErr == nil:
		return fmt.Errorf("%s: it is not executable, or in no folder that the sandbox shows (--sandbox-show): %w", path, err)
	case errors.Is(err, unix.ENOENT) && statErr == nil:
		return fmt.Errorf("%s: its interpreter (the first line) is not there: %w", path, err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine, nor a script with a #! line: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// limit sets the limits that the command and all it starts inherit.
func (p *plan) limit() error {
	// 1, not 0: with 0 the kernel still starts the host's crash handler, as the host's root, when one is set.
	if err := lower(unix.RLIMIT_CORE, 1); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	if err := lower(unix.RLIMIT_FSIZE, uint64(p.Disk)); err != nil {
		return fmt.Errorf("limit the size of files: %w", err)
	}
	// It counts what the user runs elsewhere too.
	if err := lower(unix.RLIMIT_NPROC, uint64(tasks(p.UID)+p.PIDs)); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	// The command is what the kernel ends first when memory is short.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	return nil
}

func lower(what int, to uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, what, nil, &now); err != nil {
		return err
	}
	to = min(to, now.Max)
	return unix.Prlimit(0, what, &unix.Rlimit{Cur: to, Max: to}, nil)
}

// tasks counts the processes and threads of a user.
func tasks(uid int) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || int(st.Uid) != uid {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(dir, "status")) // it may have ended
		for line := range bytes.Lines(text) {
			if count, ok := bytes.CutPrefix(line, []byte("Threads:")); ok {
				threads, _ := strconv.Atoi(string(bytes.TrimSpace(count)))
				n += threads
			}
		}
	}
	return n
}

// become gives up every capability for good, and becomes the plan's user where root has started this.
func (p *plan) become() error {
	for c := uintptr(0); c <= 63; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) && !p.Assume {
			break // the kernel knows no more, or the user has none to give up
		}
		if err != nil {
			return fmt.Errorf("give up capability %d: %w", c, err)
		}
	}
	if p.Assume {
		if err := p.assume(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	return nil
}

// assume makes the calling thread the plan's user, who gets the command's files too: /dev/stdout is opened by its name.
func (p *plan) assume() error {
	for fd := range 3 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
			if err := unix.Fchown(fd, p.UID, p.GID); err != nil {
				return fmt.Errorf("hand over the command's files: %w", err)
			}
		}
	}
	id, group := uintptr(p.UID), uintptr(p.GID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave all groups: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, group, group, group); errno != 0 {
		return fmt.Errorf("become group %d: %w", p.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
		return fmt.Errorf("become user %d: %w", p.UID, errno)
	}
	// The change of user has cancelled this.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with ralph: %w", err)
	}
	return nil
}
