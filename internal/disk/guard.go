package disk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Guard sees that a place keeps some room. Several goroutines may watch with one guard; it acts once.
type Guard struct {
	Place string
	Floor int64                      // bytes that must stay free; 0 or less: nothing is ever short
	Room  func(string) (Room, error) // default RoomAt

	looking sync.Mutex // one look at a time

	mu     sync.Mutex
	takers []*taker // guarded by mu
}

// Taker is somebody who may fill the place.
type Taker struct {
	// Folders are what it may write. They need not be there all the time.
	Folders func() []string
	// Marks are what its processes may have as an argument, or in their environment as "NAME=value": what they hold open that
	// is in no folder counts as well. They must be more than others can guess.
	Marks []string
	// End ends it, and need not wait for that. It is called once at most.
	End func(*TakenError)
}

// taker is a Taker's account. Its amounts are guarded by Guard.looking.
type taker struct {
	Taker
	start Amount // what it had when it came: a checkout is not its doing
	last  Amount // what it had when somebody was last ended
	ended bool
	// patience is how long a look may take.
	patience time.Duration
}

// TakenError says that somebody was ended for what it has taken.
type TakenError struct {
	Taken Amount // since it was added
	Short *ShortError
}

func (e *TakenError) Error() string {
	written, left := Size(e.Taken.Bytes), Size(e.Short.Room.Bytes)+" free"
	if e.Short.files {
		written, left = fmt.Sprintf("%d files", e.Taken.Files), fmt.Sprintf("room for %d files", e.Short.Room.Files)
	}
	if e.Taken.Cut {
		written = "at least " + written
	}
	return fmt.Sprintf("the run was filling the disk: it wrote %s, which left %s in %s (min-free-mb is %d)",
		written, left, e.Short.Place, e.Short.Floor>>20)
}

// measureTime bounds a look at one taker's folders: however many files it makes, it shall not keep the guard from the others.
const measureTime = 2 * time.Second

// slower is how much longer than the first look a later one may take: a busy machine that has read what there is long ago
// must not make a cause of a large checkout.
const slower = 5

// share is the part of the floor that somebody must have taken to be a cause. When the place is short because of anything
// else, such as the user's own files, ending runs that have written next to nothing would free nothing and cost their
// time; and whoever has taken less than that leaves the others most of the floor.
const share = 8

// Add takes somebody into account, from what it has now on, until the function that it returns is called.
func (g *Guard) Add(ctx context.Context, t Taker) (remove func()) {
	if g.Floor <= 0 {
		return func() {}
	}
	limited, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	began := time.Now()
	start := Measure(limited, g.Place, t.Folders()...) // nothing of it runs yet, so that it holds no more
	account := &taker{Taker: t, start: start, last: start, patience: max(measureTime, slower*time.Since(began))}
	g.mu.Lock()
	g.takers = append(g.takers, account)
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.takers = slices.DeleteFunc(g.takers, func(o *taker) bool { return o == account })
	}
}

func (g *Guard) measure(ctx context.Context, t *taker) Amount {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	a := Measure(ctx, g.Place, t.Folders()...)
	h := held(ctx, g.Place, t.Marks)
	return Amount{Bytes: a.Bytes + h.Bytes, Files: a.Files + h.Files, Cut: a.Cut || h.Cut}
}

// Short looks whether there is too little room now. A place that cannot be looked at is not short: what is wrong with it
// others will say.
func (g *Guard) Short() *ShortError {
	if r, err := g.room(); err == nil && g.Floor > 0 {
		return short(g.Place, r, g.Floor)
	}
	return nil
}

func (g *Guard) room() (Room, error) {
	if g.Room != nil {
		return g.Room(g.Place)
	}
	return RoomAt(g.Place)
}

// Watch looks after the place until ctx ends. Each time that it becomes short, or has room again, it calls changed.
func (g *Guard) Watch(ctx context.Context, changed func(*ShortError)) {
	if g.Floor <= 0 {
		return
	}
	was := false
	for {
		lack, pause := g.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if (lack != nil) != was {
			was = lack != nil
			changed(lack)
		}
		next := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
	}
}

// look ends whoever has taken most, if there is need. It says how long one may look away then.
func (g *Guard) look(ctx context.Context) (*ShortError, time.Duration) {
	g.looking.Lock()
	defer g.looking.Unlock()
	r, err := g.room()
	if err != nil {
		return nil, longestPause
	}
	lack := short(g.Place, r, g.Floor)
	if lack == nil {
		return nil, untilShort(r, g.Floor)
	}
	began := time.Now()
	g.endOne(ctx, lack)
	// While it stays short there is need to look often, and no need to do nothing else.
	return lack, min(max(20*time.Since(began), shortestPause), longestPause)
}

// endOne ends the one that has taken most, of those that have taken enough. While one that was ended still gives its room
// back, the others are a cause only by what they have taken since.
func (g *Guard) endOne(ctx context.Context, lack *ShortError) {
	g.mu.Lock()
	takers := slices.Clone(g.takers)
	g.mu.Unlock()
	giving := slices.ContainsFunc(takers, func(t *taker) bool { return t.ended })
	now := make([]Amount, len(takers))
	var measured sync.WaitGroup
	for i, t := range takers {
		if !t.ended {
			measured.Go(func() { now[i] = g.measure(ctx, t) })
		}
	}
	measured.Wait()
	if ctx.Err() != nil {
		return
	}
	f := floorFor(g.Floor, lack.Room)
	most := -1
	for i, t := range takers {
		since := t.start
		if giving {
			since = t.last
		}
		if t.ended || !enough(now[i].minus(since), f, lack.files) {
			continue
		}
		if most < 0 || now[most].minus(takers[most].start).of(lack.files) < now[i].minus(t.start).of(lack.files) {
			most = i
		}
	}
	if most < 0 {
		return
	}
	for i, t := range takers {
		t.last = now[i]
	}
	takers[most].ended = true
	takers[most].End(&TakenError{Taken: now[most].minus(takers[most].start), Short: lack})
}

// enough reports whether somebody who has taken that is a cause. Who has made more than can be counted is one as well: the
// rest may be hidden behind it.
func enough(taken Amount, f floor, files bool) bool {
	if files {
		return taken.Files > f.files/share
	}
	return taken.Bytes > f.bytes/share || taken.Cut
}

func (a Amount) of(files bool) int64 {
	if files {
		return a.Files
	}
	return a.Bytes
}

// minus is what has come since; never less than nothing.
func (a Amount) minus(before Amount) Amount {
	return Amount{Bytes: max(0, a.Bytes-before.Bytes), Files: max(0, a.Files-before.Files), Cut: a.Cut && !before.Cut}
}
