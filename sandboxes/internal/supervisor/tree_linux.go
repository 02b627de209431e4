package supervisor

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// execMark, followed by the command's number, is in the environment of a command's processes.
const execMark = "RALPH_EXEC="

const (
	firstPause = 100 * time.Microsecond
	lastPause  = 20 * time.Millisecond
	// stopRounds limits the searches for new processes while all known ones are stopped.
	stopRounds = 100
)

// endTree kills everything that a command has started, and returns when it is gone. If no other command runs, that is all
// processes but this one. Otherwise it is the processes that belong to the command by parent, session or environment, and
// those without a known owner: only a process that tries to escape gets into that state.
func (s *server) endTree(c *runningCommand) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s.mu.Lock()
		left, known := s.killOnce(c)
		reaped := s.reaped
		s.mu.Unlock()
		if known && left == 0 {
			return
		}
		select {
		case <-reaped:
		case <-time.After(pause):
		}
	}
}

// endAll kills all descendants of this process, and returns when they are gone.
func (s *server) endAll() {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s.mu.Lock()
		left, known := s.killOnce(nil)
		s.mu.Unlock()
		if known && left == 0 {
			return
		}
		<-time.After(pause)
	}
}

// killOnce kills the processes of a command, or all if c is nil. left is the number of living processes found; known is
// false if they could not be listed. mu must be held.
func (s *server) killOnce(c *runningCommand) (left int, known bool) {
	if s.init && len(s.commands) == 1 {
		if unix.Kill(-1, unix.SIGKILL) == unix.ESRCH { // kills all at once, so no fork escapes
			return 0, true // there was none
		}
		owned, known := s.ownedBy(c)
		return len(owned), known
	}
	return stopAndKill(func() ([]proc.Listed, bool) { return s.ownedBy(c) })
}

// KillDescendants kills all descendants of this process.
func KillDescendants() {
	stopAndKill(func() ([]proc.Listed, bool) {
		all, err := proc.List()
		return descendants(all, os.Getpid()), err == nil
	})
}

// stopAndKill kills the processes that list returns. It first stops them: stopped processes start no others, so a fork bomb
// cannot outrun it, and only living parents show the owner of a process.
func stopAndKill(list func() ([]proc.Listed, bool)) (left int, known bool) {
	stopped := make(map[int]bool)
	for range stopRounds {
		found, seen := list()
		known = seen
		fresh := false
		for _, p := range found {
			if !stopped[p.PID] {
				stopped[p.PID], fresh = true, true
				_ = unix.Kill(p.PID, unix.SIGSTOP)
			}
		}
		if seen && !fresh {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(stopped), known
}

// ownedBy lists the living processes of c and those without an owner; all if c is nil. mu must be held.
func (s *server) ownedBy(c *runningCommand) (owned []proc.Listed, known bool) {
	all, err := s.processes()
	if err != nil {
		return nil, false
	}
	byPID := make(map[int]proc.Listed, len(all))
	for _, p := range all {
		byPID[p.PID] = p
	}
	env := make([]byte, 16<<10)
	owners := make(map[int]*runningCommand)
	for _, p := range all {
		if p.Ended {
			continue
		}
		if c == nil {
			owned = append(owned, p)
		} else if o := s.ownerOf(p, byPID, owners, env); o == nil || o == c {
			owned = append(owned, p)
		}
	}
	return owned, true
}

// ownerOf returns the command that a process belongs to, or nil. known caches the results.
func (s *server) ownerOf(p proc.Listed, byPID map[int]proc.Listed, known map[int]*runningCommand, env []byte) *runningCommand {
	if o, ok := known[p.PID]; ok {
		return o
	}
	known[p.PID] = nil // breaks a cycle, which two inconsistent listings could contain
	o := s.rootOf(p)
	if o == nil && p.Parent != os.Getpid() {
		if parent, ok := byPID[p.Parent]; ok {
			o = s.ownerOf(parent, byPID, known, env)
		}
	}
	if o == nil {
		o = s.byEnvironment(p, env)
	}
	known[p.PID] = o
	return o
}

// rootOf returns the command whose first process is the process itself or its session leader.
func (s *server) rootOf(p proc.Listed) *runningCommand {
	for _, c := range s.commands {
		if c.root == p.PID || c.root == p.Session {
			return c
		}
	}
	return nil
}

// byEnvironment returns the command whose mark is in a process's environment.
func (s *server) byEnvironment(p proc.Listed, buf []byte) *runningCommand {
	n := readFile(procFile(p.PID, "environ"), buf)
	for entry := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if !bytes.HasPrefix(entry, []byte(execMark)) {
			continue
		}
		for _, c := range s.commands {
			if string(entry) == c.mark {
				return c
			}
		}
	}
	return nil
}
