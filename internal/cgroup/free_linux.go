package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Free returns how many more processes and threads the control groups of this process allow. limited is false if there is
// no limit or it cannot be read.
func Free() (n int, limited bool) {
	places := ownPlaces()
	at, ok := places["pids"]
	if !ok {
		at = places[""]
	}
	return freeIn(at.Dir)
}

// freeIn returns the smallest remainder of a group and its ancestors, each of which may have a limit.
func freeIn(dir string) (least int, limited bool) {
	for ; len(dir) > 1; dir = filepath.Dir(dir) { // stops at the root; dir is empty if the group is unknown
		most, ok := readNumber(dir, "pids.max")
		used, known := readNumber(dir, "pids.current")
		if free := max(0, most-used); ok && known && (!limited || free < least) {
			least, limited = free, true
		}
	}
	return least, limited
}

func readNumber(dir, file string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil // "max" means no limit
}
