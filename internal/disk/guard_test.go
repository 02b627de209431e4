package disk

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const mib = 1 << 20

// scene is a guard over a place whose free space the test sets.
type scene struct {
	t     *testing.T
	guard *Guard
	room  atomic.Pointer[Room]
}

func newScene(t *testing.T, floor int64) *scene {
	t.Helper()
	s := &scene{t: t}
	s.guard = &Guard{Place: t.TempDir(), Floor: floor, Room: func(string) (Room, error) { return *s.room.Load(), nil }}
	s.free(100 * floor)
	return s
}

func (s *scene) free(bytes int64) { s.room.Store(&Room{Bytes: bytes}) }

// run is a writer that records its ends.
type run struct {
	dir    string
	ended  []*UsageError
	remove func()
}

func (s *scene) add(before int) *run {
	s.t.Helper()
	r := &run{dir: s.t.TempDir()}
	fill(s.t, r.dir+"/before", before)
	r.remove = s.guard.Add(s.t.Context(), Writer{
		Folders: func() []string { return []string{r.dir} }, End: func(err *UsageError) { r.ended = append(r.ended, err) },
	})
	return r
}

// look checks once, and reports whether space was short.
func (s *scene) look() bool {
	s.t.Helper()
	short, _ := s.guard.check(s.t.Context())
	return short != nil
}

func (s *scene) wantEnded(want int, runs ...*run) {
	s.t.Helper()
	for i, r := range runs {
		if len(r.ended) != want {
			s.t.Errorf("run %d was ended %d times, want %d", i, len(r.ended), want)
		}
	}
}

// The largest writer is ended, and then the next if that was not enough.
func TestGuardEndsTheBiggestFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	small, big, bigger := s.add(0), s.add(0), s.add(0)
	fill(t, small.dir+"/f", mib)
	fill(t, big.dir+"/f", 4*mib)
	fill(t, bigger.dir+"/f", 8*mib)
	if s.look() {
		t.Fatal("short with much room")
	}
	s.wantEnded(0, small, big, bigger)

	s.free(15 * mib)
	if !s.look() {
		t.Fatal("not short")
	}
	s.wantEnded(0, small, big)
	s.wantEnded(1, bigger)
	if got := bigger.ended[0].Error(); !strings.Contains(got, "wrote 8 MiB") || !strings.Contains(got, "15 MiB free") || !strings.Contains(got, "16 MiB must stay free") {
		t.Errorf("it says %q", got)
	}

	s.look() // its space is still being freed, and nobody has written more
	s.wantEnded(0, small, big)
	s.wantEnded(1, bigger)

	bigger.remove()
	s.look()
	s.wantEnded(0, small)
	s.wantEnded(1, big)

	big.remove()
	s.look()
	s.wantEnded(0, small)
}

// A second writer that keeps writing does not have to wait until the first is removed.
func TestGuardEndsWhoGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	first, second := s.add(0), s.add(0)
	fill(t, first.dir+"/f", 8*mib)
	fill(t, second.dir+"/f", 6*mib)
	s.free(0)
	s.look()
	s.wantEnded(1, first)
	fill(t, second.dir+"/more", mib) // too little to be a cause
	s.look()
	s.wantEnded(0, second)
	fill(t, second.dir+"/most", 2*mib)
	s.look()
	s.wantEnded(1, first, second)
}

// While space is being freed, writers are ended only for what they have written since.
func TestGuardWaitsForWhatIsFreed(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	freeing := true
	s.guard.Freeing = func() bool { return freeing }
	r := s.add(0)
	fill(t, r.dir+"/f", 8*mib)
	s.free(0)
	for range 2 {
		s.look()
	}
	s.wantEnded(0, r)
	fill(t, r.dir+"/more", 3*mib)
	s.look()
	s.wantEnded(1, r)

	late := s.add(0)
	fill(t, late.dir+"/f", 3*mib)
	r.remove()
	freeing = false
	s.look()
	s.wantEnded(1, r, late)
	late.remove()

	next := s.add(0) // its writes between two deletions count for neither
	s.free(100 * mib)
	s.look()
	fill(t, next.dir+"/f", 8*mib)
	freeing = true
	s.free(0)
	s.look()
	s.wantEnded(0, next)
}

// If the user's own files fill the disk, no writer is ended for its checkout or for little usage.
func TestGuardSparesWhoIsNotTheCause(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	checkout, little := s.add(32*mib), s.add(0)
	fill(t, little.dir+"/f", mib)
	fill(t, checkout.dir+"/f", mib)
	s.free(0)
	s.look()
	s.wantEnded(0, checkout, little)
	fill(t, checkout.dir+"/g", 2*mib)
	s.look()
	s.wantEnded(0, little)
	s.wantEnded(1, checkout)
}

// Empty files count where the number of files is limited.
func TestGuardCountsFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib) // 1024 files must stay free; more than 128 make a cause
	big, many := s.add(0), s.add(0)
	fill(t, big.dir+"/f", 8*mib)
	for i := range 200 {
		fill(t, many.dir+"/"+strings.Repeat("x", i+1), 0)
	}
	s.room.Store(&Room{Bytes: 1 << 40, Files: 1000, MostFiles: 100_000})
	if short := s.guard.Short(); !s.look() || !strings.Contains(short.Error(), "too little room for new files") {
		t.Fatalf("%v", short)
	}
	s.wantEnded(0, big)
	s.wantEnded(1, many)
	if got := many.ended[0].Error(); !strings.Contains(got, "wrote 200 files") {
		t.Errorf("it says %q", got)
	}
	s.room.Store(&Room{Bytes: 1 << 40, Files: 1000, MostFiles: 9000}) // this file system never had many files
	if s.look() {
		t.Error("short")
	}
}

// A writer whose folders cannot be measured completely is not spared.
func TestGuardEndsWhoHides(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	hides, plain := s.add(0), s.add(0)
	if err := os.MkdirAll(hides.dir+strings.Repeat("/d", deepest+5), 0o700); err != nil {
		t.Fatal(err)
	}
	s.free(0)
	s.look()
	s.wantEnded(0, plain)
	s.wantEnded(1, hides)
	if got := hides.ended[0].Error(); !strings.Contains(got, "at least") {
		t.Errorf("it says %q", got)
	}
}

func TestGuardWithoutAFloor(t *testing.T) {
	t.Parallel()
	for _, floor := range []int64{0, -1} {
		s := newScene(t, floor)
		s.free(0)
		r := s.add(mib)
		s.guard.Watch(func() { t.Error("it watches") })()
		if s.guard.Short() != nil {
			t.Error("short of nothing")
		}
		s.wantEnded(0, r)
	}
	blind := &Guard{Place: t.TempDir(), Floor: mib, Room: func(string) (Room, error) { return Room{}, errors.New("no such place") }}
	if blind.Short() != nil {
		t.Error("what cannot be seen is not short")
	}
}

// Callers of Watch are told when space becomes short and when it is enough again, until they call stop.
func TestGuardWatches(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	s.free(0)
	told, other := make(chan *ShortError), make(chan *ShortError)
	stop := s.guard.Watch(func() { told <- s.guard.Short() })
	if short := <-told; short == nil || short.Place != s.guard.Place {
		t.Errorf("told %v", short)
	}
	stopOther := s.guard.Watch(func() { other <- s.guard.Short() })
	s.free(1 << 40)
	if one, two := <-told, <-other; one != nil || two != nil {
		t.Errorf("told %v and %v", one, two)
	}
	stop()
	stopOther()
}

// The disk is watched exactly while it is needed.
func TestGuardWatchesWhileNeeded(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	s.free(0)
	looks := make(chan bool, 1)
	room := s.guard.Room
	s.guard.Room = func(place string) (Room, error) {
		select {
		case looks <- true:
		default:
		}
		return room(place)
	}
	one, other := s.guard.Watch(func() {}), s.guard.Watch(func() {})
	<-looks
	one()
	<-looks
	<-looks
	other()
	select { // drops the last check before the end
	case <-looks:
	default:
	}
	select {
	case <-looks:
		t.Error("it looks, and nobody needs it")
	case <-time.After(3 * shortestPause):
	}
}

// However fast writers write, the next check comes before the space is used up.
func TestPauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		room Room
		want time.Duration
	}{
		{Room{Bytes: 1 << 40}, longestPause},
		{Room{Bytes: 1 << 30}, shortestPause},
		{Room{Bytes: 3 << 30}, time.Second},
		{Room{Bytes: 1 << 40, MostFiles: 1e9, Files: 1<<16 + 2*fastestFiles}, 2 * time.Second},
	} {
		if got := untilShort(tt.room, 1<<30); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.room, got, tt.want)
		}
	}
}

// The text of a ShortError does not depend on the current free space.
func TestShortIsOneReason(t *testing.T) {
	t.Parallel()
	for name, rooms := range map[string][2]Room{
		"bytes": {{Bytes: 3 << 20}, {Bytes: 9 << 20}},
		"files": {{Bytes: 1 << 40, Files: 5, MostFiles: 1000}, {Bytes: 1 << 40, Files: 7, MostFiles: 1000}},
	} {
		if a, b := checkShort("/state", rooms[0], 40<<20), checkShort("/state", rooms[1], 40<<20); a == nil || b == nil || a.Error() != b.Error() {
			t.Errorf("%s: %v, then %v", name, a, b)
		}
	}
}

// TestGuardWatchesAnotherPlace: no writer is ended for the other place, because no writer fills it.
func TestGuardWatchesAnotherPlace(t *testing.T) {
	t.Parallel()
	s := newScene(t, 16*mib)
	s.guard.Also = "/elsewhere"
	little := atomic.Bool{}
	s.guard.Room = func(place string) (Room, error) {
		if place == "/elsewhere" && little.Load() {
			return Room{Bytes: 15 * mib}, nil
		}
		return *s.room.Load(), nil
	}
	r := s.add(0)
	fill(t, r.dir+"/f", 8*mib)
	if s.look() || s.guard.Short() != nil {
		t.Fatal("short with much room")
	}
	little.Store(true)
	if short := s.guard.Short(); !s.look() || short == nil || short.Place != "/elsewhere" {
		t.Errorf("with little: %v", short)
	}
	s.wantEnded(0, r)
	s.free(15 * mib)
	if short := s.guard.Short(); short == nil || short.Place != s.guard.Place {
		t.Errorf("with little in both: %v", short)
	}
	s.guard.Floor = 0
	if short := s.guard.Short(); short != nil {
		t.Errorf("without a floor: %v", short)
	}
}
