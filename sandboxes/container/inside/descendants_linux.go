package inside

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// freezeRounds bounds how often new processes are looked for while all known ones stand still.
const freezeRounds = 100

// killDescendants kills every process that comes from this one. They are stopped first: what stands still starts
// nothing, so that the killing overtakes a fork bomb.
func killDescendants() {
	stopped := make(map[int]bool)
	for range freezeRounds {
		fresh := false
		for _, pid := range descendants() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// descendants lists the living processes that come from this one.
func descendants() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := proc.Readdirnames(-1)
	_ = proc.Close()
	children := make(map[int][]int)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := children[os.Getpid()]; len(next) > 0; {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		pids = append(pids, pid)
	}
	return pids
}

// parentOf returns the parent of a process that is alive.
func parentOf(pid int) (int, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	return parseStat(text)
}

// parseStat reads the parent from a line of /proc/PID/stat: "PID (NAME) STATE PARENT …". The name may hold anything. A
// zombie has a parent, too: its children may not have been handed on yet.
func parseStat(text []byte) (parent int, ok bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
