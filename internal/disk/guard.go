package disk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
)

// Guard keeps some space free on a disk: it ends the largest writer when there is too little. Several goroutines may call Watch.
type Guard struct {
	Place string                     // where writers write
	Also  string                     // another place with the same floor, where none of them writes; empty: none
	Floor int64                      // bytes that must stay free; 0 or less: no limit
	Room  func(string) (Room, error) // default RoomAt
	// Freeing reports whether files of writers that were removed are still being deleted; nil: they never are.
	Freeing func() bool

	checking sync.Mutex // one check at a time
	freeing  bool       // guarded by checking; account.last counts

	mu      sync.Mutex
	writers []*account // guarded by mu
	needed  int        // guarded by mu; calls of Needed that are not over
	end     func()     // guarded by mu; ends the watch for them
}

// Writer is a run, or anything else that writes to the disk.
type Writer struct {
	// Folders are the folders in which it writes. They need not exist.
	Folders func() []string
	// Marks identify its processes: an argument, or "NAME=value" in the environment. Deleted files that these processes hold open
	// count, too. Marks must be impossible to guess.
	Marks []string
	// End asks it to end, and does not wait. It is called at most once.
	End func(*UsageError)
}

// account is what the guard knows of a Writer. Its amounts are guarded by Guard.checking.
type account struct {
	Writer
	start Amount // its usage when it was added, such as a checkout
	last  Amount // its usage when a writer was last ended, or when space was first short while files were being deleted
	ended bool
	// timeout bounds one measurement.
	timeout time.Duration
}

// UsageError means that a writer was ended because it was filling the disk.
type UsageError struct {
	Wrote Amount // since it was added
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

// measureTime bounds the measurement of one writer, however many files it makes.
const measureTime = 2 * time.Second

// slower is how many times as long as the first measurement a later one may take, so that on a busy machine a large checkout does
// not count as more than could be measured.
const slower = 5

// share: a writer counts as a cause if it has written more than this part of the floor (1/share). When other files fill the disk,
// ending runs that have written little would not help.
const share = 8

// Add adds a writer, whose usage counts from now on, until remove is called.
func (g *Guard) Add(ctx context.Context, w Writer) (remove func()) {
	if g.Floor <= 0 {
		return func() {}
	}
	limited, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	began := time.Now()
	start := Measure(limited, g.Place, w.Folders()...) // it has no processes yet that hold deleted files
	added := &account{Writer: w, start: start, last: start, timeout: max(measureTime, slower*time.Since(began))}
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
	h := held(ctx, g.Place, w.Marks)
	return Amount{Bytes: a.Bytes + h.Bytes, Files: a.Files + h.Files, Cut: a.Cut || h.Cut}
}

// Short returns an error if there is too little space now. A disk that cannot be read has enough: others report its fault.
func (g *Guard) Short() *ShortError {
	if g.Floor <= 0 {
		return nil
	}
	if r, err := g.room(g.Place); err == nil {
		if lack := short(g.Place, r, g.Floor); lack != nil {
			return lack
		}
	}
	lack, _ := g.also()
	return lack
}

// also looks at the other place, and returns the time until the next look.
func (g *Guard) also() (*ShortError, time.Duration) {
	if g.Also != "" {
		if r, err := g.room(g.Also); err == nil {
			return short(g.Also, r, g.Floor), untilShort(r, g.Floor)
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

// Watch checks the disk until ctx ends. It calls changed when space becomes short, and with nil when there is enough again.
func (g *Guard) Watch(ctx context.Context, changed func(*ShortError)) {
	if g.Floor <= 0 {
		return
	}
	was := false
	for {
		lack, pause := g.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if (lack != nil) != was {
			was = lack != nil
			changed(lack)
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// Watching watches as Watch does until stop is called.
func (g *Guard) Watching(ctx context.Context, changed func(*ShortError)) (stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { g.Watch(ctx, changed) })
	return func() { cancel(nil); watching.Wait() }
}

// Needed has the disk watched, once for all callers, until each has called done.
func (g *Guard) Needed() (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.needed++; g.needed == 1 {
		g.end = g.Watching(context.Background(), func(*ShortError) {})
	}
	return func() {
		g.mu.Lock()
		g.needed--
		end, last := g.end, g.needed == 0
		g.mu.Unlock()
		if last {
			end()
		}
	}
}

// check ends the largest writer if space is short. It returns the time until the next check.
func (g *Guard) check(ctx context.Context) (*ShortError, time.Duration) {
	g.checking.Lock()
	defer g.checking.Unlock()
	also, pause := g.also()
	r, err := g.room(g.Place)
	if err != nil {
		return also, pause
	}
	lack := short(g.Place, r, g.Floor)
	if lack == nil {
		g.freeing = g.freeing && g.frees()
		return also, min(pause, untilShort(r, g.Floor))
	}
	began := time.Now()
	g.endOne(ctx, lack)
	// Check often while space is short, but not all the time.
	return lack, min(max(20*time.Since(began), shortestPause), longestPause)
}

// frees reports that a writer which was ended, or one before it, still frees its space.
func (g *Guard) frees() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.writers, func(w *account) bool { return w.ended }) || g.Freeing != nil && g.Freeing()
}

// endOne ends the writer with the largest usage, if that is enough to be a cause. While an ended writer, or one before it, still
// frees its space, the usage of the others counts from the moment it was ended, or this was first seen.
func (g *Guard) endOne(ctx context.Context, lack *ShortError) {
	g.mu.Lock()
	writers := slices.Clone(g.writers)
	g.mu.Unlock()
	freeing := g.frees()
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
		remember(writers, now)
		return
	}
	f := floorFor(g.Floor, lack.Room)
	most := -1
	for i, w := range writers {
		since := w.start
		if freeing {
			since = w.last
		}
		if w.ended || !enough(now[i].minus(since), f, lack.files) {
			continue
		}
		if most < 0 || now[most].minus(writers[most].start).of(lack.files) < now[i].minus(w.start).of(lack.files) {
			most = i
		}
	}
	if most < 0 {
		return
	}
	remember(writers, now)
	g.freeing = true
	writers[most].ended = true
	writers[most].End(&UsageError{Wrote: now[most].minus(writers[most].start), Short: lack})
}

func remember(writers []*account, now []Amount) {
	for i, w := range writers {
		w.last = now[i]
	}
}

// enough reports whether a writer with this usage is a cause. One that could not be measured completely is a cause, too.
func enough(wrote Amount, f floor, files bool) bool {
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

// minus is the growth since before, at least 0.
func (a Amount) minus(before Amount) Amount {
	return Amount{Bytes: max(0, a.Bytes-before.Bytes), Files: max(0, a.Files-before.Files), Cut: a.Cut && !before.Cut}
}
