package landlock

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
)

// use is how many bytes of memory are a process's own. What it shares with files can be thrown away, and does not count.
type use struct {
	pid  int
	size int64
}

// usesOf measures processes; the largest comes first.
func usesOf(pids []int, measure func(pid int) int64) []use {
	uses := make([]use, 0, len(pids))
	for _, pid := range pids {
		uses = append(uses, use{pid, measure(pid)})
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.size, a.size) })
	return uses
}

func sum(uses []use) (total int64) {
	for _, u := range uses {
		total += u.size
	}
	return total
}

// roughly is a process's memory as the kernel has counted it: with all of what it shares with other processes, as after a
// fork. One that has ended has none.
func roughly(pid int) int64 {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return 0
	}
	return kilobytes(text, "RssAnon", "RssShmem", "VmSwap")
}

// exactly is a process's memory with its part of what it shares. The kernel counts every page for this.
func exactly(pid int) int64 {
	text, err := os.ReadFile(procFile(pid, "smaps_rollup"))
	if err != nil || len(text) == 0 { // a program that nobody may look into
		return roughly(pid)
	}
	return kilobytes(text, "Pss_Anon", "Pss_Shmem", "SwapPss")
}

// kilobytes adds up, in bytes, the lines of these names in a text of the kernel's.
func kilobytes(text []byte, names ...string) (total int64) {
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		if !slices.Contains(names, string(name)) {
			continue
		}
		if f := bytes.Fields(rest); len(f) > 0 {
			if kb, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil && kb > 0 && kb < 1<<50 {
				total += kb << 10
			}
		}
	}
	return total
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
