package proc

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// process is one process as a scan saw it.
type process struct {
	pid, parent, group, session int

	started uint64 // with the PID it names the process; grows with time
	zombie  bool   // ended, only not yet reaped
	kernel  bool   // the kernel's own: it has no program
}

// tree finds the processes that belong together. It belongs to one goroutine.
type tree struct {
	root   int    // leader of the session and the group, our unreaped child; 0: only the needle counts
	needle string // "NAME=value" in the environment; empty: only the group counts
	parts  bool   // values that begin with the needle's and a "-" count, too

	spare bool // members are listed only, and not stopped

	known map[int]uint64 // members seen so far: PID and started
	grew  bool           // the last listing has shown a new living member
	began uint64         // started of root; what is older need not be looked at
}

// mostLooks bounds one scan, for processes that start others faster than they can be stopped.
const mostLooks = 10

// scan returns the living members of the tree, this process never among them, and the processes (PID and started) whose
// membership is not known yet. It lists the processes again until it finds no new member: before it was stopped, a member may have
// started a child that only its living parent identifies.
func (t *tree) scan() (alive []process, doubtful map[int]uint64, err error) {
	if t.known == nil {
		t.known = make(map[int]uint64)
	}
	var all []process
	var now map[int]process
	t.grew = true
	for looks := 0; t.grew && looks < mostLooks; looks++ {
		t.grew = false
		if all, err = processes(); err != nil {
			return nil, nil, err
		}
		now = make(map[int]process, len(all))
		for _, p := range all {
			now[p.pid] = p
		}
		t.began = now[t.root].started
		doubtful = t.learnMarked(all, now)
		t.learnKin(all, now)
	}
	for _, p := range all {
		if !p.zombie && t.knows(p.pid, now) {
			alive = append(alive, p)
		}
	}
	return alive, doubtful, nil
}

// learnMarked makes known what carries the needle, and returns what cannot be told yet.
func (t *tree) learnMarked(all []process, now map[int]process) (doubtful map[int]uint64) {
	doubtful = make(map[int]uint64)
	self, env := os.Getpid(), make([]byte, 16<<10)
	for _, p := range all {
		if p.pid == self || p.zombie || steadyStarts && p.started < t.began || t.knows(p.pid, now) {
			continue
		}
		var unsure bool
		env, unsure = environment(p.pid, env)
		if contains(env, t.needle, t.parts) {
			t.learn(p)
		}
		if unsure {
			doubtful[p.pid] = p.started
		}
	}
	return doubtful
}

// learnKin makes known the root's group and session, and the children and sessions of members, to any depth.
func (t *tree) learnKin(all []process, now map[int]process) {
	self := os.Getpid()
	for added := true; added; {
		added = false
		for _, p := range all {
			if p.pid == self || t.knows(p.pid, now) {
				continue
			}
			if t.inGroup(p) || t.knows(p.parent, now) || t.inSession(p, now) {
				t.learn(p)
				added = true
			}
		}
	}
}

// learn makes a member known, and stops it unless members are spared, so that it cannot start others while the scan goes on.
func (t *tree) learn(p process) {
	t.known[p.pid] = p.started
	t.grew = t.grew || !p.zombie
	if !p.zombie && p.group != t.root && !t.spare {
		p.signal(unix.SIGSTOP)
	}
}

// knows reports whether the process that has the PID now is a known member.
func (t *tree) knows(pid int, now map[int]process) bool {
	started, ok := t.known[pid]
	return ok && now[pid].started == started
}

// inSession reports a process of a session that a member has begun. The member may be gone: nobody gets its PID as long as the session
// has a process. So that finds a child that was started while its parent was killed.
func (t *tree) inSession(p process, now map[int]process) bool {
	began, ok := t.known[p.session]
	leader, alive := now[p.session]
	return ok && p.started >= began && (!alive || leader.started == began)
}

func (t *tree) inGroup(p process) bool {
	return t.root != 0 && (p.pid == t.root || p.group == t.root || p.session == t.root)
}

// signal signals the process that the scan saw, not one that has got its PID since.
func (p process) signal(sig unix.Signal) {
	// On Linux the handle is a pidfd: what is checked below is what gets the signal.
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if now, err := inspect(p.pid); err == nil && now.started == p.started {
		_ = handle.Signal(sig) // what refuses SIGKILL shows up as a survivor
	}
}

// contains reports whether a block of NUL-terminated entries has this one or, with parts, one that continues it after a "-".
func contains(block []byte, entry string, parts bool) bool {
	for len(block) > 0 {
		head, rest, _ := bytes.Cut(block, []byte{0})
		if rest, ok := bytes.CutPrefix(head, []byte(entry)); ok && (len(rest) == 0 || parts && rest[0] == '-') {
			return true
		}
		block = rest
	}
	return false
}
