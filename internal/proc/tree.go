package proc

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// process describes a process at the time of a scan.
type process struct {
	pid, parent, group, session int

	started uint64 // identifies the process together with the PID; grows with time
	zombie  bool   // ended, but not yet reaped
	kernel  bool   // a kernel thread, which has no program
}

// tree finds the processes that belong together. It is used by one goroutine.
type tree struct {
	root   int    // leader of session and group, our unreaped child; 0: match the needle only
	needle string // "NAME=value" in the environment; empty: match the group only
	parts  bool   // also match values that begin with the needle's and a "-"

	listOnly bool // only list members; do not stop them

	members  map[int]uint64 // members seen so far: PID and started
	foundNew bool           // the last listing had a new living member
	began    uint64         // start time of root; older processes are skipped
}

// maxListings bounds the listings of one scan, in case processes start others faster than they can be stopped.
const maxListings = 10

// scan returns the living members of the tree, without this process, and the processes (PID and start time) whose
// membership is still unknown. It repeats the listing until there is no new member: before a member was stopped, it may
// have started a child that only its living parent identifies.
func (t *tree) scan() (alive []process, doubtful map[int]uint64, err error) {
	if t.members == nil {
		t.members = make(map[int]uint64)
	}
	var all []process
	var now map[int]process
	t.foundNew = true
	for looks := 0; t.foundNew && looks < maxListings; looks++ {
		t.foundNew = false
		if all, err = processes(); err != nil {
			return nil, nil, err
		}
		now = make(map[int]process, len(all))
		for _, p := range all {
			now[p.pid] = p
		}
		t.began = now[t.root].started
		doubtful = t.addMarked(all, now)
		t.addRelatives(all, now)
	}
	for _, p := range all {
		if !p.zombie && t.isMember(p.pid, now) {
			alive = append(alive, p)
		}
	}
	return alive, doubtful, nil
}

// addMarked records the processes with the needle, and returns those that are undecided.
func (t *tree) addMarked(all []process, now map[int]process) (doubtful map[int]uint64) {
	doubtful = make(map[int]uint64)
	self, env := os.Getpid(), make([]byte, 16<<10)
	for _, p := range all {
		if p.pid == self || p.zombie || steadyStarts && p.started < t.began || t.isMember(p.pid, now) {
			continue
		}
		var unsure bool
		env, unsure = environment(p.pid, env)
		if contains(env, t.needle, t.parts) {
			t.addMember(p)
		}
		if unsure {
			doubtful[p.pid] = p.started
		}
	}
	return doubtful
}

// addRelatives records the root's group and session, and the children and sessions of members, transitively.
func (t *tree) addRelatives(all []process, now map[int]process) {
	self := os.Getpid()
	for added := true; added; {
		added = false
		for _, p := range all {
			if p.pid == self || t.isMember(p.pid, now) {
				continue
			}
			if t.inGroup(p) || t.isMember(p.parent, now) || t.inSession(p, now) {
				t.addMember(p)
				added = true
			}
		}
	}
}

// addMember records a member. Unless spare is set, it stops the member, so that it cannot start others during the scan.
func (t *tree) addMember(p process) {
	t.members[p.pid] = p.started
	t.foundNew = t.foundNew || !p.zombie
	if !p.zombie && p.group != t.root && !t.listOnly {
		p.signal(unix.SIGSTOP)
	}
}

// isMember reports whether the process that now has the PID is a known member.
func (t *tree) isMember(pid int, now map[int]process) bool {
	started, ok := t.members[pid]
	return ok && now[pid].started == started
}

// inSession reports whether a process belongs to a session that a member created, even if that member has ended: a PID is
// not reused while it is the id of a session with processes. This finds a child that started while its parent was killed.
func (t *tree) inSession(p process, now map[int]process) bool {
	began, ok := t.members[p.session]
	leader, alive := now[p.session]
	return ok && p.started >= began && (!alive || leader.started == began)
}

func (t *tree) inGroup(p process) bool {
	return t.root != 0 && (p.pid == t.root || p.group == t.root || p.session == t.root)
}

// signal signals the process of the scan, not a later one with the same PID.
func (p process) signal(sig unix.Signal) {
	// On Linux the handle is a pidfd: the process that is checked below is the one that gets the signal.
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if now, err := inspect(p.pid); err == nil && now.started == p.started {
		_ = handle.Signal(sig) // a process that survives SIGKILL is reported by survivors
	}
}

// contains reports whether a block of NUL-terminated entries has the entry or, with parts, one that continues it with a
// "-".
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
