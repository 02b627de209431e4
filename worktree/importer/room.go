package importer

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
)

// FreeSpace returns how many bytes an import may write, and the place that limits it: half of the free space where that is
// smallest, because the data is written twice before the first copy is deleted. Everything else on a full disk needs the
// rest.
func FreeSpace(places ...string) (bytes int64, place string) {
	bytes = math.MaxInt64
	for _, at := range places {
		if free, err := disk.RoomAt(at); err == nil && free.Bytes/2 < bytes {
			bytes, place = max(1, free.Bytes/2), at
		}
	}
	return bytes, place
}

// noRoom is the script's message about files for which there was no space.
const noRoom = "no room for the files"

// errRoom means that the import would be within the caps if the disk had more space.
var errRoom = errors.New("no room for it")

// ExplainSize adds to an ErrTooBig that the free disk space was the limit, if it was lower than the usual caps.
func ExplainSize(err error, usual Caps, places ...string) error {
	if bytes, place := FreeSpace(places...); errors.Is(err, ErrTooBig) && bytes < usual.WithDefaults().Size {
		return &roomError{fmt.Errorf("%w (the limit is half of the free space in %s, which is %s)", err, place, disk.Size(2*bytes))}
	}
	return err
}

type roomError struct{ error }

func (e *roomError) Unwrap() []error { return []error{e.error, errRoom} }

// IsDiskFull reports whether an import failed because a disk of this host is full.
func IsDiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
