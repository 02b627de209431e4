package importer

import (
	"errors"
	"fmt"
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

// noRoom is what the script says of files for which there was no room.
const noRoom = "no room for the files"

// errRoom: the import would be within the caps if a disk had more room.
var errRoom = errors.New("no room for it")

// ExplainSize says when the disk is the reason that something is too big: usual is what would be allowed otherwise.
func ExplainSize(err error, usual Caps, places ...string) error {
	if bytes, place := Room(places...); errors.Is(err, ErrTooBig) && bytes < usual.WithDefaults().Size {
		return &roomError{fmt.Errorf("%w (half of what is free in %s, %s, is the most)", err, place, disk.Size(2*bytes))}
	}
	return err
}

type roomError struct{ error }

func (e *roomError) Unwrap() []error { return []error{e.error, errRoom} }

// Full reports whether an import ended because a disk of this host is full.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
