package forge

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// secondLook is how long a forge's replicas get to learn what one of them has shown already.
const secondLook = time.Second

// Twice asks, and asks once more past every cache when the answer is "not found": replicas of a forge may learn of a
// thing at different times.
func (s *Stack) Twice(ctx context.Context, ask func(context.Context) error) error {
	err := ask(ctx)
	if !Missing(err) {
		return err
	}
	if err := s.clock.Sleep(ctx, secondLook); err != nil {
		return err
	}
	return ask(Fresh(ctx))
}

// Missing reports an answer that says there is no such thing, or no longer.
func Missing(err error) bool {
	switch Status(err) {
	case http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// Number reads an issue's key; a number has only one spelling that is a key.
func Number(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

// NotFound is the error for a key that names no issue.
func NotFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// Gone turns answers that say there is no such issue into ErrNotFound.
func Gone(key string, err error) error {
	if Missing(err) || Status(err) == http.StatusMovedPermanently {
		return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
	}
	return err
}
