package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// steadyStarts is false: start times are wall-clock times, which a person or a time service can set back.
const steadyStarts = false

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// processes lists all processes of the machine.
func processes() ([]process, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]process, 0, len(list))
	for i := range list {
		all = append(all, fromKinfo(&list[i]))
	}
	return all, nil
}

// inspect reads one process. It fails if there is none.
func inspect(pid int) (process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, unix.ESRCH)
	}
	return fromKinfo(info), nil
}

func fromKinfo(k *unix.KinfoProc) process {
	p := process{
		pid:     int(k.Proc.P_pid),
		parent:  int(k.Eproc.Ppid),
		group:   int(k.Eproc.Pgid),
		started: uint64(k.Proc.P_starttime.Sec)*uint64(time.Second/time.Microsecond) + uint64(k.Proc.P_starttime.Usec),
		zombie:  k.Proc.P_stat == zombieState,
	}
	if sid, err := unix.Getsid(p.pid); err == nil {
		p.session = sid
	}
	return p
}

// environment returns a process's environment as NUL-terminated entries; buf is unused. unsure is always false: during an
// exec the system shows the old program until the new one is complete.
func environment(pid int, buf []byte) (env []byte, unsure bool) {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return buf[:0], false
	}
	return parseProcArgs(raw), false
}

// bootID returns "": start times are wall-clock times, so they differ across boots.
func bootID() string { return "" }

// awaitExit waits until the child has ended, and leaves it unreaped.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		awaitZombie(pid)
		return
	}
	defer func() { _ = unix.Close(queue) }()
	unix.CloseOnExec(queue)
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	changes := []unix.Kevent_t{change}
	for {
		n, err := unix.Kevent(queue, changes, make([]unix.Kevent_t, 1), nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n > 0 { // an error means that it has ended already
			awaitZombie(pid)
			return
		}
	}
}

// awaitZombie polls until the child has ended: the event comes slightly before the child can be reaped.
func awaitZombie(pid int) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if p, err := inspect(pid); err != nil || p.zombie {
			return
		}
		time.Sleep(pause)
	}
}
