package disk

import (
	"fmt"
	"time"
)

// floor is the free space that must remain.
type floor struct{ bytes, files int64 }

// perFile is the number of bytes of the floor that count as one file where the number of files is limited: ext4's ratio.
const perFile = 16 << 10

// floorFor returns the floor of a file system. Inodes can run out long before the bytes do. On file systems with few
// inodes, a tenth of them must stay free.
func floorFor(bytes int64, r Room) floor {
	return floor{bytes: bytes, files: min(bytes/perFile, r.MostFiles/10)}
}

// ShortError means that there is less free space than the floor.
type ShortError struct {
	Place string
	Room  Room
	Floor int64 // in bytes

	files bool // files run short, not bytes
}

// Error omits the amount of free space: it changes all the time, and each distinct reason is reported only once.
func (e *ShortError) Error() string {
	if e.files {
		return fmt.Sprintf("too little room for new files in %s", e.Place)
	}
	return fmt.Sprintf("less than %d MiB is free in %s", e.Floor>>20, e.Place)
}

// checkShort returns an error if there is too little space, or nil.
func checkShort(place string, r Room, bytes int64) *ShortError {
	f := floorFor(bytes, r)
	switch {
	case r.Bytes < f.bytes:
		return &ShortError{Place: place, Room: r, Floor: bytes}
	case r.Files < f.files:
		return &ShortError{Place: place, Room: r, Floor: bytes, files: true}
	}
	return nil
}

// Upper bounds of the growth of usage per second.
const (
	fastestBytes = 2 << 30
	fastestFiles = 200_000
)

// Bounds of the time between checks.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// untilShort returns the time until the next check. Even at the fastest growth, space is not short before that.
func untilShort(r Room, bytes int64) time.Duration {
	f := floorFor(bytes, r)
	pause := float64(r.Bytes-f.bytes) / fastestBytes
	if r.MostFiles > 0 {
		pause = min(pause, float64(r.Files-f.files)/fastestFiles)
	}
	return min(max(time.Duration(pause*float64(time.Second)), shortestPause), longestPause)
}
