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

// Where no control group holds a limit, the supervisor looks at the processes: the more often, the less is left, but
// never so often that looking takes more than a part of one processor.
const (
	// watchEvery is the time between two looks when no limit is near.
	watchEvery = 50 * time.Millisecond
	// watchOften is the shortest time between two looks.
	watchOften = 2 * time.Millisecond
	// watchShare is the part of a processor that looks take when no limit is near: one in so many.
	watchShare = 20
	// fillRate is how many bytes of new memory one processor fills in a second, at most.
	fillRate = 4 << 30
	// countLimit says when an exact count, for which the kernel looks at every page, is too expensive: when the rough count
	// is so many times the limit.
	countLimit = 4
)

// watch looks for as long as this process lives.
func (s *server) watch() {
	runtime.LockOSThread() // its processor time is counted
	w := &watcher{memory: s.Memory, pids: s.PIDs, dying: map[int]bool{}, kill: func(pid int, cause string) {
		if unix.Kill(pid, unix.SIGKILL) == nil {
			_ = say(s.conn, event{Kind: kindKilled, Cause: cause})
		}
	}}
	for {
		began := spent()
		room := int64(0)
		if all, err := s.processes(); err == nil {
			room = w.look(all)
		}
		<-time.After(pause(room, spent()-began))
	}
}

// pause is the time until the next look, when room is left and the last look has cost so much.
func pause(room int64, cost time.Duration) time.Duration {
	filled := time.Duration(float64(room) / fillRate / float64(runtime.NumCPU()) * float64(time.Second))
	return min(max(watchEvery, watchShare*cost), max(filled, watchOften, cost))
}

// spent is the processor time of this thread so far.
func spent() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// watcher holds the limits that no control group holds.
type watcher struct {
	memory int64 // 0: no limit
	pids   int   // 0: no limit
	dying  map[int]bool
	kill   func(pid int, cause string)
}

// look kills the largest processes while all together have too much memory, and the last ones listed when they are too
// many. It returns how much memory is left to them.
func (w *watcher) look(all []proc.Listed) (room int64) {
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
	uses, total := measure(pids, roughly)
	if total > w.memory && total <= countLimit*w.memory {
		uses, total = measure(pids, exactly)
	}
	room = max(0, w.memory-total)
	for _, u := range uses { // a dying process grows no more
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

// use is how many bytes of memory are a process's own. What it shares with files can be dropped, and does not count.
type use struct {
	pid          int
	size, shared int64 // shared, as part of size, is memory that other processes may map too
}

// measure measures processes. The largest comes first. total has the files of the scratch space in it: as far as they are
// mapped, they are shared memory of processes.
func measure(pids []int, measure func(pid int) use) (uses []use, total int64) {
	shared := int64(0)
	for _, pid := range pids {
		u := measure(pid)
		uses, total, shared = append(uses, u), total+u.size, shared+u.shared
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.size, a.size) })
	return uses, total + max(0, scratchUsed()-shared)
}

// pageTables are in no count of a process's pages, and can be made large with few of them.
const pageTables = "VmPTE"

// roughly counts memory that a process shares with others, as after a fork, in full.
func roughly(pid int) use {
	return parseUse(pid, "status", "RssShmem", "RssAnon", "VmSwap", pageTables)
}

// exactly counts a process's part of the memory that it shares with others.
func exactly(pid int) use {
	u := parseUse(pid, "smaps_rollup", "Pss_Shmem", "Pss_Anon", "SwapPss")
	if u.size == 0 { // a program that nobody may look into
		return roughly(pid)
	}
	u.size += parseUse(pid, "status", "", pageTables).size
	return u
}

// parseUse reads a file of /proc that says how much memory a process has.
func parseUse(pid int, file, shared string, own ...string) use {
	var buf [4096]byte
	text := buf[:readFile(procFile(pid, file), buf[:])]
	u := use{pid: pid, shared: kilobytes(text, shared)}
	u.size = u.shared + kilobytes(text, own...)
	return u
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

// scratchUsed is the memory that files in the scratch space take, where it is a file system in memory of the sandbox's.
func scratchUsed() int64 {
	var st unix.Statfs_t
	if os.Getpid() != 1 || unix.Statfs("/tmp", &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize) //nolint:unconvert // its type differs between architectures
}
