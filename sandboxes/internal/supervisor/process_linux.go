package supervisor

import (
	"os"
	"strconv"

	"github.com/ralph-pool/ralph/internal/proc"
)

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// processes lists all processes of the sandbox, including zombies, except this one.
func (s *server) processes() ([]proc.Listed, error) {
	all, err := proc.List()
	if err != nil {
		return nil, err
	}
	// In a PID namespace of its own, all processes belong to the sandbox.
	if s.init {
		return deleteOne(all, os.Getpid()), nil
	}
	return descendants(all, os.Getpid()), nil
}

func deleteOne(all []proc.Listed, pid int) (others []proc.Listed) {
	for _, p := range all {
		if p.PID != pid {
			others = append(others, p)
		}
	}
	return others
}

// descendants returns the descendants of a process, parents first.
func descendants(all []proc.Listed, pid int) (found []proc.Listed) {
	children := make(map[int][]proc.Listed)
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	found = append(found, children[pid]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// readFile fills buf from the start of a file. It returns 0 if the file cannot be read: the process may have ended.
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
