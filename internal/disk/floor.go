package disk

import (
	"fmt"
	"time"
)

// floor is what must stay free.
type floor struct{ bytes, files int64 }

// perFile is how many bytes of a disk stand for one file, where their number is limited: what ext4 is made with.
const perFile = 16 << 10

// floorFor is the floor of a file system. Files are a second thing that can run out, long before the bytes do when they are
// empty; few of them are no shortage where there never were many.
func floorFor(bytes int64, r Room) floor {
	return floor{bytes: bytes, files: min(bytes/perFile, r.MostFiles/10)}
}

// ShortError says that there is less room than there must be.
type ShortError struct {
	Place string
	Room  Room
	Floor int64 // bytes

	files bool // it is files that are short
}

func (e *ShortError) Error() string {
	left := Size(e.Room.Bytes) + " free"
	if e.files {
		left = fmt.Sprintf("room for %d files", e.Room.Files)
	}
	return fmt.Sprintf("only %s in %s (min-free-mb is %d): free some, or choose another place with state-dir", left, e.Place, e.Floor>>20)
}

// short says what a place lacks; nil when it has enough.
func short(place string, r Room, bytes int64) *ShortError {
	f := floorFor(bytes, r)
	switch {
	case r.Bytes < f.bytes:
		return &ShortError{Place: place, Room: r, Floor: bytes}
	case r.Files < f.files:
		return &ShortError{Place: place, Room: r, Floor: bytes, files: true}
	}
	return nil
}

// How fast somebody who writes as fast as a machine lets them uses up room, in a second.
const (
	fastestBytes = 2 << 30
	fastestFiles = 200_000
)

// How long a guard looks away.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// untilShort is the time in which a place that has enough can at the earliest be short: the longest that one may look away.
func untilShort(r Room, bytes int64) time.Duration {
	f := floorFor(bytes, r)
	pause := float64(r.Bytes-f.bytes) / fastestBytes
	if r.MostFiles > 0 {
		pause = min(pause, float64(r.Files-f.files)/fastestFiles)
	}
	return min(max(time.Duration(pause*float64(time.Second)), shortestPause), longestPause)
}
