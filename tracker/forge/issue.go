package forge

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Number reads an issue's key; a number has only one spelling that is a key.
func Number(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

// NotFound is the error for a key that names no issue.
func NotFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// Gone turns answers that say there is no such issue into ErrNotFound.
func Gone(key string, err error) error {
	if transport.Missing(err) || transport.Status(err) == http.StatusMovedPermanently {
		return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
	}
	return err
}
