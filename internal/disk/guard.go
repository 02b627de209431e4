package disk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
)

// Guard keeps space free on a disk: it ends the largest writer when there is too little. It is safe for concurrent use.
type Guard struct {
	Place string                     // where the writers write
	Also  string                     // a second place with the same floor, to which no writer writes; may be empty
	Floor int64                      // bytes that must stay free; 0 or less: no floor
	Room  func(string) (Room, error) // default RoomAt
	// Freeing reports whether files of removed writers are still being deleted; nil means never.
	Freeing func() bool

	checking sync.Mutex // held during a check
	freeing  bool       // guarded by checking; usage counts from account.last

	mu       sync.Mutex
	writers  []*account // guarded by mu
	watchers []*func()  // guarded by mu; see Watch
	end      func()     // guarded by mu; ends the loop of Watch
}

// Writer is a run, or anything else that writes to the disk.
type Writer struct {
	// Folders returns the folders in which it writes. They need not exist.
	Folders func() []string
	// Marks identify its processes: an argument, or "NAME=value" in the environment. Deleted files that these processes
	// hold open count, too. Marks must be impossible to guess.
	Marks []string
	// End asks the writer to end, without waiting. It is called at most once.
	End func(*UsageError)
}

// account is the guard's record of a Writer. Its amounts are guarded by Guard.checking.
type account struct {
	Writer
	start Amount // usage when it was added, such as a checkout
	last  Amount // usage when a writer was last ended, or when space was first short during a deletion
	ended bool
	// timeout bounds one measurement.
	timeout time.Duration
}

// UsageError means that a writer was ended because it was filling the disk.
type UsageError struct {
	Wrote Amount // growth since the writer was added
	Short *ShortError
}

func (e *UsageError) Error() string {
	written, left := Size(e.Wrote.Bytes), Size(e.Short.Room.Bytes)+" free"
	if e.Short.files {
		written, left = fmt.Sprintf("%d files", e.Wrote.Files), fmt.Sprintf("room for %d files", e.Short.Room.Files)
	}
	if e.Wrote.Cut {
		written = "at least " + written
	}
	return fmt.Sprintf("the run was filling the disk: it wrote %s, which left %s in %s (%d MiB must stay free)",
		written, left, e.Short.Place, e.Short.Floor>>20)
}

// measureTime bounds the measurement of one writer, which may have any number of files.
const measureTime = 2 * time.Second

// slowdownFactor is the factor by which a later measurement may take longer than the first. Without it, a large checkout on a busy
// machine would look like a writer that cannot be measured.
const slowdownFactor = 5

// share defines a cause: a writer that has written more than 1/share of the floor. If other files fill the disk, ending
// runs that have written little would not help.
const share = 8

// Add adds a writer until remove is called. Its usage counts from now on.
func (g *Guard) Add(ctx context.Context, w Writer) (remove func()) {
	if g.Floor <= 0 {
		return func() {}
	}
	limited, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	began := time.Now()
	start := Measure(limited, g.Place, w.Folders()...) // it has no processes with deleted files yet
	added := &account{Writer: w, start: start, last: start, timeout: max(measureTime, slowdownFactor*time.Since(began))}
	g.mu.Lock()
	g.writers = append(g.writers, added)
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.writers = slices.DeleteFunc(g.writers, func(o *account) bool { return o == added })
	}
}

func (g *Guard) measure(ctx context.Context, w *account) Amount {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	a := Measure(ctx, g.Place, w.Folders()...)
	h := heldByProcesses(ctx, g.Place, w.Marks)
	return Amount{Bytes: a.Bytes + h.Bytes, Files: a.Files + h.Files, Cut: a.Cut || h.Cut}
}

// Short returns an error if there is too little space now. It ignores a disk that cannot be read: others report that fault.
func (g *Guard) Short() *ShortError {
	if g.Floor <= 0 {
		return nil
	}
	if r, err := g.room(g.Place); err == nil {
		if lack := checkShort(g.Place, r, g.Floor); lack != nil {
			return lack
		}
	}
	lack, _ := g.checkOther()
	return lack
}

// checkOther checks the other place, and returns the time until its next check.
func (g *Guard) checkOther() (*ShortError, time.Duration) {
	if g.Also != "" {
		if r, err := g.room(g.Also); err == nil {
			return checkShort(g.Also, r, g.Floor), untilShort(r, g.Floor)
		}
	}
	return nil, longestPause
}

func (g *Guard) room(place string) (Room, error) {
	if g.Room != nil {
		return g.Room(place)
	}
	return RoomAt(place)
}

// Watch checks the disk, in one loop for all callers, until each of them has called stop. changed is called when space becomes short
// and when there is enough again, perhaps once more after stop.
func (g *Guard) Watch(changed func()) (stop func()) {
	if g.Floor <= 0 {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watchers = append(g.watchers, &changed); len(g.watchers) == 1 {
		ctx, cancel := context.WithCancelCause(context.Background())
		var watching sync.WaitGroup
		watching.Go(func() { g.watch(ctx) })
		g.end = func() { cancel(nil); watching.Wait() }
	}
	return func() {
		g.mu.Lock()
		g.watchers = slices.DeleteFunc(g.watchers, func(other *func()) bool { return other == &changed })
		end, last := g.end, len(g.watchers) == 0
		g.mu.Unlock()
		if last {
			end()
		}
	}
}

func (g *Guard) watch(ctx context.Context) {
	was := false
	for {
		lack, pause := g.check(ctx)
		if (lack != nil) != was {
			was = lack != nil
			g.mu.Lock()
			watchers := slices.Clone(g.watchers)
			g.mu.Unlock()
			for _, changed := range watchers {
				(*changed)()
			}
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// Check ends the largest writer if space is short now, for a caller that has just written much.
func (g *Guard) Check(ctx context.Context) {
	if g.Floor > 0 {
		_, _ = g.check(ctx)
	}
}

// check ends the largest writer if space is short. It returns the time until the next check.
func (g *Guard) check(ctx context.Context) (*ShortError, time.Duration) {
	g.checking.Lock()
	defer g.checking.Unlock()
	also, pause := g.checkOther()
	r, err := g.room(g.Place)
	if err != nil {
		return also, pause
	}
	lack := checkShort(g.Place, r, g.Floor)
	if lack == nil {
		g.freeing = g.freeing && g.isFreeing()
		return also, min(pause, untilShort(r, g.Floor))
	}
	began := time.Now()
	g.endOne(ctx, lack)
	// Check often while space is short, but not all the time.
	return lack, min(max(20*time.Since(began), shortestPause), longestPause)
}

// isFreeing reports whether the space of an ended writer, current or earlier, is still being freed.
func (g *Guard) isFreeing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.writers, func(w *account) bool { return w.ended }) || g.Freeing != nil && g.Freeing()
}

// endOne ends the writer with the largest usage if that usage makes it a cause. While space of an earlier writer is still
// being freed, the usage of the others counts only from the time when that writer was ended, or the deletion first seen.
func (g *Guard) endOne(ctx context.Context, lack *ShortError) {
	g.mu.Lock()
	writers := slices.Clone(g.writers)
	g.mu.Unlock()
	freeing := g.isFreeing()
	now := make([]Amount, len(writers))
	var measured sync.WaitGroup
	for i, w := range writers {
		if !w.ended {
			measured.Go(func() { now[i] = g.measure(ctx, w) })
		}
	}
	measured.Wait()
	if ctx.Err() != nil {
		return
	}
	began := freeing && !g.freeing
	g.freeing = freeing
	if began {
		setLast(writers, now)
		return
	}
	f := floorFor(g.Floor, lack.Room)
	most := -1
	for i, w := range writers {
		since := w.start
		if freeing {
			since = w.last
		}
		if w.ended || !isCause(now[i].minus(since), f, lack.files) {
			continue
		}
		if most < 0 || now[most].minus(writers[most].start).of(lack.files) < now[i].minus(w.start).of(lack.files) {
			most = i
		}
	}
	if most < 0 {
		return
	}
	setLast(writers, now)
	g.freeing = true
	writers[most].ended = true
	writers[most].End(&UsageError{Wrote: now[most].minus(writers[most].start), Short: lack})
}

func setLast(writers []*account, now []Amount) {
	for i, w := range writers {
		w.last = now[i]
	}
}

// isCause reports whether usage of this size is a cause. An incomplete measurement is a cause, too.
func isCause(wrote Amount, f floor, files bool) bool {
	if files {
		return wrote.Files > f.files/share
	}
	return wrote.Bytes > f.bytes/share || wrote.Cut
}

func (a Amount) of(files bool) int64 {
	if files {
		return a.Files
	}
	return a.Bytes
}

// minus returns the growth since before, at least 0.
func (a Amount) minus(before Amount) Amount {
	return Amount{Bytes: max(0, a.Bytes-before.Bytes), Files: max(0, a.Files-before.Files), Cut: a.Cut && !before.Cut}
}
