package tracker

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/nearest"
)

// Compare is a comparison function that orders issues by priority, then age (oldest first), then key.
func Compare(a, b Issue) int {
	last := func(i int) int { return cmp.Or(i, math.MaxInt) }
	if c := cmp.Compare(last(a.Priority), last(b.Priority)); c != 0 {
		return c
	}
	if az, bz := a.Created.IsZero(), b.Created.IsZero(); az != bz {
		if az {
			return 1
		}
		return -1
	}
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Key, b.Key))
}

// Nearest returns the key of the listing that resembles a mistyped key, or "". A number resembles no other number.
func (l Listing) Nearest(key string) string {
	if _, err := strconv.Atoi(key); err == nil {
		return ""
	}
	var keys []string
	for _, i := range l.Issues {
		keys = append(keys, i.Key)
	}
	return nearest.To(key, keys)
}
