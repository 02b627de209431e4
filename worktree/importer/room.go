package importer

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Room is how much an import may write to some places: half of what is free where there is least, since it is written twice
// before the first copy goes. Everything else on a full disk needs the rest.
func Room(places ...string) (bytes int64, place string) {
	bytes = math.MaxInt64
	for _, at := range places {
		if free, err := disk.RoomAt(at); err == nil && free.Bytes/2 < bytes {
			bytes, place = max(1, free.Bytes/2), at
		}
	}
	return bytes, place
}

// Full reports whether an import ended because a disk of this host is full.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
