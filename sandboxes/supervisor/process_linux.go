package supervisor

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// process is one process as /proc shows it.
type process struct {
	pid, parent, session int
	zombie               bool
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// processes lists the living and the ended processes of the sandbox, without this one.
func (s *server) processes() ([]process, error) {
	all, err := listProcesses()
	if err != nil {
		return nil, err
	}
	// In a PID namespace of its own every process is the sandbox's.
	if s.init {
		return deleteOne(all, os.Getpid()), nil
	}
	return descendants(all, os.Getpid()), nil
}

func deleteOne(all []process, pid int) (others []process) {
	for _, p := range all {
		if p.pid != pid {
			others = append(others, p)
		}
	}
	return others
}

// descendants are the processes that come from one, parents first.
func descendants(all []process, pid int) (found []process) {
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	found = append(found, children[pid]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// listProcesses lists all processes that /proc shows.
func listProcesses() ([]process, error) {
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

// readFile fills buf from the start of a file. A process that has ended has no files.
func readFile(name string, buf []byte) (n int) {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for n < len(buf) {
		c, err := f.Read(buf[n:])
		n += c
		if err != nil {
			break
		}
	}
	return n
}

var errStat = errors.New("unknown format of a process's stat")

// parseStat decodes /proc/PID/stat. The name in parentheses is the process's own choice.
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
