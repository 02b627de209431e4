package native

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often memory and processes are looked at where no control group bounds them. What grows faster than
// this is stopped a little late, but is stopped.
const watchEvery = 50 * time.Millisecond

// watch ends the largest process when all together have too much memory, and what is youngest when they are too many.
// It never returns.
func (s *server) watch() {
	dying := make(map[int]bool) // they may need longer than until the next look
	kill := func(pid int, cause string) {
		if unix.Kill(pid, unix.SIGKILL) == nil && !dying[pid] {
			dying[pid] = true
			_ = s.say(event{Kind: kindKilled, Cause: cause}) // when ralph is gone, so are we
		}
	}
	for range time.Tick(watchEvery) {
		all, err := processes()
		if err != nil {
			continue
		}
		for pid := range dying {
			if !slices.ContainsFunc(all, func(p process) bool { return p.pid == pid && !p.zombie }) {
				delete(dying, pid)
			}
		}
		total, largest, size := scratchUsed(), 0, int64(0)
		for _, p := range all {
			if p.pid == os.Getpid() || p.zombie {
				continue
			}
			used := anonymous(p.pid)
			total += used
			if used > size {
				largest, size = p.pid, used
			}
		}
		if s.plan.WatchMemory && total > s.plan.Memory && largest > 0 {
			kill(largest, causeMemory)
		}
		if s.plan.WatchPIDs && len(all) > s.plan.PIDs+1 {
			for _, p := range all[min(len(all), s.plan.PIDs):] {
				if p.pid != os.Getpid() {
					kill(p.pid, causePIDs)
				}
			}
		}
	}
}

// scratchUsed is the memory that files in the scratch space take.
func scratchUsed() int64 {
	var st unix.Statfs_t
	if unix.Statfs("/tmp", &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize) //nolint:unconvert // its type differs between architectures
}

// anonymous is the memory that is a process's own: what is shared with files can be thrown away.
func anonymous(pid int) int64 {
	var buf [4096]byte
	n := readFile(procFile(pid, "status"), buf[:])
	return parseAnonymous(buf[:n])
}

// parseAnonymous adds up the kilobytes in /proc/PID/status that are the process's own.
func parseAnonymous(status []byte) (total int64) {
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "RssAnon" && string(name) != "VmSwap" {
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
