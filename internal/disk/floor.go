package disk

import (
	"fmt"
	"time"
)

// floor is the space that must stay free.
type floor struct{ bytes, files int64 }

// perFile is how many bytes of the floor stand for one file, where the number of files is limited: ext4's ratio.
const perFile = 16 << 10

// floorFor is the floor of a file system. The number of files can run out long before the bytes; on file systems with few files a
// tenth of them is enough.
func floorFor(bytes int64, r Room) floor {
	return floor{bytes: bytes, files: min(bytes/perFile, r.MostFiles/10)}
}

// ShortError means that there is less free space than the floor.
type ShortError struct {
	Place string
	Room  Room
	Floor int64 // bytes

	files bool // the number of files is the limit
}

// Error does not say how much is free: that changes all the time, and people are told once of each reason.
func (e *ShortError) Error() string {
	if e.files {
		return fmt.Sprintf("room for fewer files than must stay free in %s", e.Place)
	}
	return fmt.Sprintf("less than the %d MiB that must stay free in %s", e.Floor>>20, e.Place)
}

// short is the error for a lack of space; nil if there is enough.
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

// The fastest growth of usage in a second.
const (
	fastestBytes = 2 << 30
	fastestFiles = 200_000
)

// The time between checks.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// untilShort is the time until the next check: at the fastest growth, space is not short before that.
func untilShort(r Room, bytes int64) time.Duration {
	f := floorFor(bytes, r)
	pause := float64(r.Bytes-f.bytes) / fastestBytes
	if r.MostFiles > 0 {
		pause = min(pause, float64(r.Files-f.files)/fastestFiles)
	}
	return min(max(time.Duration(pause*float64(time.Second)), shortestPause), longestPause)
}
