package supervisor

import (
	"bytes"
	"cmp"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Without control groups the supervisor enforces the limits by polling: more often when less is left, but bounded by a
// share of one processor.
const (
	// watchEvery is the pause between two polls when no limit is near.
	watchEvery = 50 * time.Millisecond
	// watchOften is the shortest pause between two polls.
	watchOften = 2 * time.Millisecond
	// watchShare bounds the processor time of polls when no limit is near: one part in watchShare of one processor.
	watchShare = 20
	// fillRate is the maximum number of bytes of new memory that one processor fills in a second.
	fillRate = 4 << 30
	// countLimit is the ratio of the rough count to the limit above which an exact count, for which the kernel visits every
	// page, is too expensive.
	countLimit = 4
)

// watch polls for as long as this process lives.
func (s *server) watch() {
	runtime.LockOSThread() // its processor time is measured by thread
	w := &watcher{memory: s.Memory, pids: s.PIDs, dying: map[int]bool{}, kill: func(pid int, cause string) {
		if unix.Kill(pid, unix.SIGKILL) == nil {
			_ = sendEvent(s.conn, event{Kind: kindKilled, Cause: cause})
		}
	}}
	for {
		began := threadTime()
		room := int64(0)
		if all, err := s.processes(); err == nil {
			room = w.check(all)
		}
		<-time.After(pause(room, threadTime()-began))
	}
}

// pause returns the pause until the next poll, for the memory that is left in bytes and the processor time of the last
// poll.
func pause(room int64, cost time.Duration) time.Duration {
	filled := time.Duration(float64(room) / fillRate / float64(runtime.NumCPU()) * float64(time.Second))
	return min(max(watchEvery, watchShare*cost), max(filled, watchOften, cost))
}

// threadTime returns the processor time of this thread.
func threadTime() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// watcher enforces the limits that no control group enforces.
type watcher struct {
	memory int64 // 0: no limit
	pids   int   // 0: no limit
	dying  map[int]bool
	kill   func(pid int, cause string)
}

// check kills the largest processes while all together exceed the memory limit, and the last ones listed beyond the limit of
// processes. It returns the memory that is left, in bytes.
func (w *watcher) check(all []proc.Listed) (room int64) {
	var pids []int
	for _, p := range all {
		if !p.Ended {
			pids = append(pids, p.PID)
		}
	}
	for pid := range w.dying {
		if !slices.Contains(pids, pid) {
			delete(w.dying, pid)
		}
	}
	if w.pids > 0 {
		for _, pid := range pids[min(len(pids), w.pids):] {
			w.end(pid, causePIDs)
		}
	}
	if w.memory == 0 {
		return math.MaxInt64
	}
	uses, total := measure(pids, fullUse)
	if total > w.memory && total <= countLimit*w.memory {
		uses, total = measure(pids, proportionalUse)
	}
	room = max(0, w.memory-total)
	for _, u := range uses { // a dying process no longer grows
		if w.dying[u.pid] {
			total -= u.size
		}
	}
	for _, u := range uses {
		if total <= w.memory {
			break
		}
		if !w.dying[u.pid] {
			w.end(u.pid, causeMemory)
			total -= u.size
		}
	}
	return room
}

func (w *watcher) end(pid int, cause string) {
	if !w.dying[pid] {
		w.dying[pid] = true
		w.kill(pid, cause)
	}
}

// memoryUse is a process's own memory in bytes. File mappings do not count, because the kernel can drop them.
type memoryUse struct {
	pid          int
	size, shared int64 // shared is the part of size that other processes may map, too
}

// measure measures processes, the largest first. total includes the files of the scratch space; mapped ones are already
// counted as shared memory of processes.
func measure(pids []int, measure func(pid int) memoryUse) (uses []memoryUse, total int64) {
	shared := int64(0)
	for _, pid := range pids {
		u := measure(pid)
		uses, total, shared = append(uses, u), total+u.size, shared+u.shared
	}
	slices.SortStableFunc(uses, func(a, b memoryUse) int { return cmp.Compare(b.size, a.size) })
	return uses, total + max(0, scratchUsed()-shared)
}

// pageTables are not among a process's pages, and few pages can need large ones.
const pageTables = "VmPTE"

// fullUse counts memory that a process shares with others, as after a fork, in full.
func fullUse(pid int) memoryUse {
	return parseUse(pid, "status", "RssShmem", "RssAnon", "VmSwap", pageTables)
}

// proportionalUse counts a process's proportional share of the memory that it shares with others.
func proportionalUse(pid int) memoryUse {
	u := parseUse(pid, "smaps_rollup", "Pss_Shmem", "Pss_Anon", "SwapPss")
	if u.size == 0 { // a program that may not be inspected
		return fullUse(pid)
	}
	u.size += parseUse(pid, "status", "", pageTables).size
	return u
}

// parseUse reads the memory use of a process from a file of /proc.
func parseUse(pid int, file, shared string, own ...string) memoryUse {
	var buf [4096]byte
	text := buf[:readFile(procFile(pid, file), buf[:])]
	u := memoryUse{pid: pid, shared: kilobytes(text, shared)}
	u.size = u.shared + kilobytes(text, own...)
	return u
}

// kilobytes returns the sum in bytes of the named lines of a /proc file, which are in kB.
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

// scratchUsed returns the bytes used by files in the scratch space if that is a tmpfs of the sandbox.
func scratchUsed() int64 {
	var st unix.Statfs_t
	if os.Getpid() != 1 || unix.Statfs("/tmp", &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize) //nolint:unconvert // its type differs between architectures
}
