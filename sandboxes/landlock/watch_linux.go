package landlock

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// watchEvery is how often memory and processes are looked at, and watchShare the part of a processor that may be spent so:
// on a machine with many processes a look takes longer, and comes less often. What grows faster than this is stopped a
// little late, but is stopped. Waiting for a processor does not count: a busy machine needs looking at no less.
const (
	watchEvery = 50 * time.Millisecond
	watchShare = 20
)

// watch looks for as long as the helper lives. It never returns.
func (h *helper) watch() {
	runtime.LockOSThread()
	for pause := watchEvery; ; {
		<-time.After(pause)
		began := spent()
		h.look()
		pause = max(watchEvery, watchShare*(spent()-began))
	}
}

// spent is the processor time of this thread so far.
func spent() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// look ends the largest process when all together have too much memory, and what is youngest when they are too many.
func (h *helper) look() {
	pids, err := native.Descendants(os.Getpid())
	if err != nil {
		return
	}
	total, largest, size := int64(0), 0, int64(0)
	for _, pid := range pids {
		used := native.OwnMemory(pid)
		total += used
		if used > size {
			largest, size = pid, used
		}
	}
	if total > h.order.Plan.Memory && largest > 0 {
		_ = unix.Kill(largest, unix.SIGKILL)
	}
	for _, pid := range pids[min(len(pids), h.order.Plan.PIDs):] {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
