package native

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// execMark, with the command's number, is in the environment of a command's processes.
const execMark = "RALPH_EXEC="

const (
	firstPause = 100 * time.Microsecond
	lastPause  = 20 * time.Millisecond
)

// process is one process of the sandbox.
type process struct {
	pid, parent, session int
	zombie               bool
}

// endTree kills everything a command has started, and returns when it is gone. When no other command runs that is
// everything but the first process. Else it is what shows by its parents, its session or its environment that it is the
// command's; and what shows no owner any more: a process can only get into that state by trying.
func (s *server) endTree(c *command) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s.mu.Lock()
		alone := len(s.commands) == 1
		if alone {
			_ = unix.Kill(-1, unix.SIGKILL) // at one stroke, which no fork escapes
		}
		owned, known := s.ownedBy(c)
		if !alone {
			for _, p := range owned { // stopped first: it is the parents that show whose a child is
				_ = unix.Kill(p.pid, unix.SIGSTOP)
			}
			again, _ := s.ownedBy(c)
			for _, p := range again {
				_ = unix.Kill(p.pid, unix.SIGKILL)
			}
		}
		reaped := s.reaped
		s.mu.Unlock()
		if known && len(owned) == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-reaped:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ownedBy lists the living processes that are c's or nobody's; known is false when that cannot be seen now. mu is held.
func (s *server) ownedBy(c *command) (owned []process, known bool) {
	all, err := processes()
	if err != nil {
		return nil, false
	}
	byPID := make(map[int]process, len(all))
	for _, p := range all {
		byPID[p.pid] = p
	}
	env := make([]byte, 16<<10)
	owners := make(map[int]*command)
	for _, p := range all {
		if p.pid == os.Getpid() || p.zombie {
			continue
		}
		if o := s.ownerOf(p, byPID, owners, env); o == nil || o == c {
			owned = append(owned, p)
		}
	}
	return owned, true
}

// ownerOf says whose a process is; nil: nobody's. known are the answers so far.
func (s *server) ownerOf(p process, byPID map[int]process, known map[int]*command, env []byte) *command {
	if o, ok := known[p.pid]; ok {
		return o
	}
	known[p.pid] = nil // ends a circle, which two looks at different moments could make
	o := s.claims(p)
	if o == nil && p.parent != os.Getpid() {
		if parent, ok := byPID[p.parent]; ok {
			o = s.ownerOf(parent, byPID, known, env)
		}
	}
	if o == nil {
		o = s.byEnvironment(p, env)
	}
	known[p.pid] = o
	return o
}

// claims finds the command that a process is the root or of the session of.
func (s *server) claims(p process) *command {
	for _, c := range s.commands {
		if c.root == p.pid || c.root == p.session {
			return c
		}
	}
	return nil
}

// byEnvironment finds the command whose mark a process carries.
func (s *server) byEnvironment(p process, buf []byte) *command {
	n := readFile(procFile(p.pid, "environ"), buf)
	for entry := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if !bytes.HasPrefix(entry, []byte(execMark)) {
			continue
		}
		for _, c := range s.commands {
			if string(entry) == c.nonce {
				return c
			}
		}
	}
	return nil
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// readFile fills buf from the start of a file and returns how much it is; a process that is gone has none.
func readFile(name string, buf []byte) int {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	n := 0
	for n < len(buf) {
		c, err := f.Read(buf[n:])
		n += c
		if err != nil {
			break
		}
	}
	return n
}

// processes lists the processes of the sandbox.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	var buf [1024]byte
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		n := readFile(procFile(pid, "stat"), buf[:])
		if p, err := parseStat(buf[:n]); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

var errStat = errors.New("unknown format of a process's stat")

// parseStat decodes what is needed of /proc/PID/stat. The name in parentheses is the process's own choice.
func parseStat(b []byte) (process, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open {
		return process{}, errStat
	}
	fields := bytes.Fields(b[end+1:])
	const state, parent, session, threads = 0, 1, 3, 17 // after the name
	if len(fields) <= threads {
		return process{}, errStat
	}
	var p process
	var alone int
	for _, n := range []struct {
		from []byte
		to   *int
	}{{b[:open-1], &p.pid}, {fields[parent], &p.parent}, {fields[session], &p.session}, {fields[threads], &alone}} {
		v, err := strconv.Atoi(string(n.from))
		if err != nil {
			return process{}, errStat
		}
		*n.to = v
	}
	// With more threads only the first one has ended.
	p.zombie = (fields[state][0] == 'Z' || fields[state][0] == 'X') && alone <= 1
	return p, nil
}
