package landlock

import (
	"math"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// A look at what comes from here is cheap, and does not grow with what else runs on the machine; so the next one comes
// before the memory that is left could be filled. Every process of the machine is looked at more seldom, for what a
// command has hidden from the cheap look. Only processor time is counted as a look's cost: a busy machine needs looking at
// no less.
const (
	// watchEvery is the time between two looks when nothing is near.
	watchEvery = 50 * time.Millisecond
	// watchOften is the shortest time between two looks. It is no less than what a look takes of a processor.
	watchOften = 2 * time.Millisecond
	// watchShare is the part of a processor that looks take when nothing is near: one in so many.
	watchShare = 20
	// fillRate is how many bytes of new memory one processor fills in a second, at most.
	fillRate = 4 << 30
	// countLimit bounds what an exact count costs, in memory limits: processes share so much at most, for it to be made.
	countLimit = 4
)

// watcher holds the limits that no control group holds.
type watcher struct {
	memory int64
	pids   int
	dying  map[int]bool // killed; they may need longer than until the next look

	killedMemory, killedPIDs atomic.Int64
}

func newWatcher(p *plan) *watcher {
	w := &watcher{memory: math.MaxInt64, pids: math.MaxInt, dying: make(map[int]bool)}
	if p.WatchMemory {
		w.memory = p.Memory
	}
	if p.WatchPIDs {
		w.pids = p.PIDs
	}
	return w
}

// cost is what the limits have cost so far. It may be asked for while run runs.
func (w *watcher) cost() cost {
	return cost{Memory: int(w.killedMemory.Load()), PIDs: int(w.killedPIDs.Load())}
}

// run looks for as long as the helper lives. It never returns.
func (w *watcher) run() {
	runtime.LockOSThread()
	var all time.Time // when to look at all processes again
	for {
		began, now := spent(), time.Now()
		list := family
		if !now.Before(all) {
			list = native.Descendants
		}
		room := w.look(list)
		cost := spent() - began
		if !now.Before(all) {
			all = now.Add(max(watchEvery, watchShare*cost))
		}
		<-time.After(pause(room, cost))
	}
}

// pause is the time until the next look, when there was so much room and the last one has cost so much.
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

// look ends the largest processes while all together have too much memory, and the youngest when they are too many. It
// returns how much memory is left to them.
func (w *watcher) look(list func(int) ([]int, error)) (room int64) {
	pids, err := list(os.Getpid())
	if err == nil && len(pids) > w.pids { // some of which have ended, perhaps
		pids, err = native.Descendants(os.Getpid())
	}
	if err != nil {
		return 0
	}
	for pid := range w.dying {
		if !slices.Contains(pids, pid) {
			delete(w.dying, pid)
		}
	}
	for _, pid := range pids[min(len(pids), w.pids):] {
		w.kill(pid, &w.killedPIDs)
	}
	if w.memory == math.MaxInt64 {
		return w.memory
	}
	uses := usesOf(pids, roughly)
	total := sum(uses)
	if total > w.memory && total <= countLimit*w.memory {
		uses = usesOf(pids, exactly)
		total = sum(uses)
	}
	room = max(0, w.memory-total)
	for _, u := range uses { // what is ending grows no more
		if w.dying[u.pid] {
			total -= u.size
		}
	}
	for _, u := range uses {
		if total <= w.memory {
			break
		}
		if !w.dying[u.pid] {
			w.kill(u.pid, &w.killedMemory)
			total -= u.size
		}
	}
	return room
}

func (w *watcher) kill(pid int, count *atomic.Int64) {
	if !w.dying[pid] && unix.Kill(pid, unix.SIGKILL) == nil {
		w.dying[pid] = true
		count.Add(1)
	}
}
