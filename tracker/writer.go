package tracker

import (
	"context"
	"errors"
)

// ErrChanged is returned if an issue's text has changed since it was read.
var ErrChanged = errors.New("somebody has changed it meanwhile")

// Draft is a new issue that a person is about to write.
type Draft struct {
	Title, Body string
	Labels      []string
	Priority    int      // 0: none
	BlockedBy   []string // keys
}

// Writer is implemented by trackers whose issues are texts that people can edit through ralph. The error for an invalid text
// is a [Problem].
type Writer interface {
	// Text returns the draft in the tracker's storage format.
	Text(d Draft) string
	// Create adds an issue with this text. It fails if the text is not a valid issue.
	Create(ctx context.Context, text string) (Issue, error)
	// Read returns the whole text of an issue, which may be invalid.
	Read(ctx context.Context, key string) (string, error)
	// Rewrite replaces the text old. It fails if the new text is invalid, and with ErrChanged if the stored text is not old.
	Rewrite(ctx context.Context, key, old, text string) error
}
