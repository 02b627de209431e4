package tracker

import (
	"context"
	"errors"
)

// ErrChanged says that an issue's text is not what it was when it was read.
var ErrChanged = errors.New("somebody has changed it meanwhile")

// Draft is an issue that a person is about to write.
type Draft struct {
	Title, Body string
	Labels      []string
	Priority    int      // 0: none
	BlockedBy   []string // keys
}

// Writer is implemented by trackers whose issues are texts that a person may write here. What is wrong with a text is a
// [Problem].
type Writer interface {
	// Text is the draft as the tracker stores it.
	Text(d Draft) string
	// Create adds an issue with this text, if that can be worked.
	Create(ctx context.Context, text string) (Issue, error)
	// Read is an issue's whole text. It need not be valid.
	Read(ctx context.Context, key string) (string, error)
	// Rewrite replaces the text, if it still is old and the new one can be worked; else it fails, in the first case with ErrChanged.
	Rewrite(ctx context.Context, key, old, text string) error
}
