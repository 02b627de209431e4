package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Free is how many more processes and threads the control groups of this process allow; false: there is no limit, or it is not
// seen.
func Free() (n int, limited bool) {
	places := ownPlaces()
	at, ok := places["pids"]
	if !ok {
		at = places[""]
	}
	return freeIn(at.Dir)
}

// freeIn looks at a group and those above it, of which each may have a limit.
func freeIn(dir string) (least int, limited bool) {
	for ; len(dir) > 1; dir = filepath.Dir(dir) { // to the root; empty: no group is known
		most, ok := number(dir, "pids.max")
		used, known := number(dir, "pids.current")
		if free := max(0, most-used); ok && known && (!limited || free < least) {
			least, limited = free, true
		}
	}
	return least, limited
}

func number(dir, file string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil // "max" is none
}
