package native

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// What the provider "landlock" has in common with this one: the filter over system calls, the host's system folders,
// and the looking at processes.

// Filterable reports whether there is a filter over system calls for this architecture.
func Filterable() bool { return auditArch != 0 }

// Condition is what a rule of a filter may ask of one argument of a call; see [If].
type Condition = condition

// If is the condition that any of these bits (unix.BPF_JSET), or this value (unix.BPF_JEQ), is in the lower half of an
// argument, which counts from 0.
func If(arg int, test uint16, k uint32) Condition { return condition{arg, test, k} }

// Forbidden is the beginning of a filter: it refuses what no build needs, and whatever is newer than itself. What is
// appended finds the call's number loaded, leaves it so, and has to allow the rest; see [Allow].
func Forbidden() []unix.SockFilter {
	p := []unix.SockFilter{
		load(offsetArch), jump(unix.BPF_JEQ, auditArch, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetCall), jump(unix.BPF_JGT, lastKnown, 0, 1), answer(refusal(unix.ENOSYS)),
	}
	if otherABI != 0 {
		p = append(p, jump(unix.BPF_JSET, otherABI, 0, 1), answer(refusal(unix.ENOSYS)))
	}
	for _, r := range rules() {
		p = append(p, r.program()...)
	}
	return p
}

// Refuse is the part of a filter that refuses a call when all conditions hold.
func Refuse(call uint32, errno unix.Errno, when ...Condition) []unix.SockFilter {
	return rule{call: call, when: when, errno: errno}.program()
}

// Only is the part of a filter that allows a call with these values of its first argument only.
func Only(call uint32, values ...uint32) []unix.SockFilter { return only(call, values) }

// HandOver is the part of a filter that leaves a call to the process that listens to the filter.
func HandOver(call uint32) []unix.SockFilter {
	return []unix.SockFilter{jump(unix.BPF_JEQ, call, 0, 1), answer(unix.SECCOMP_RET_USER_NOTIF)}
}

// Allow is the end of a filter.
func Allow() unix.SockFilter { return answer(unix.SECCOMP_RET_ALLOW) }

// SystemPaths are the host's files and folders, as far as they exist, that every sandbox shows: its programs, the
// settings that hold no secret, and show.
func SystemPaths(show []string) (paths []string) {
	for _, s := range system(show) {
		paths = append(paths, s.Host)
	}
	return paths
}

// Lookup finds the program that name means: a path as it is, a plain name in the absolute folders of PATH in env.
func Lookup(name string, env []string) (string, error) { return lookup(name, env) }

// Descendants lists the living processes that come from one, through any number of parents, parents first.
func Descendants(pid int) (pids []int, err error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	for next := children[pid]; len(next) > 0; {
		p := next[0]
		next = append(slices.Clone(next[1:]), children[p.pid]...)
		if !p.zombie && p.pid != os.Getpid() {
			pids = append(pids, p.pid)
		}
	}
	return pids, nil
}
