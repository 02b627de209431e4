package github

import (
	"errors"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// isSkip reports a refusal of this one thing.
func isSkip(err error) bool {
	var f *forge.Failure
	return errors.As(err, &f) && f.Action == forge.Skip
}
