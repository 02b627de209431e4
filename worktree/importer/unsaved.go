package importer

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Err returns an error about the work that the sandbox could not send, or nil.
func (rep Report) Err() error {
	var err error
	if rep.Lost != "" {
		err = fmt.Errorf("commit %s cannot be imported: its objects are missing or broken", git.Short(rep.Lost))
	}
	if n := len(rep.Notes); n > 0 {
		files := &UnsavedError{fmt.Errorf("not everything is saved (%d): %s", n, strings.Join(rep.Notes[:min(n, 3)], "; "))}
		if err == nil {
			return files
		}
		return fmt.Errorf("%w; %w", err, files)
	}
	return err
}

// UnsavedError means that uncommitted files could not be saved, for example because of their permissions. The commits are
// imported.
type UnsavedError struct{ Err error }

func (e *UnsavedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnsavedError) Unwrap() error { return e.Err }

// OnlyUnsaved reports whether an error of Import consists only of an *UnsavedError.
func OnlyUnsaved(err error) bool {
	for {
		if _, ok := err.(*UnsavedError); ok { //nolint:errorlint // each layer is looked at
			return true
		}
		switch layer := err.(type) { //nolint:errorlint // each layer is looked at
		case interface{ Unwrap() error }:
			err = layer.Unwrap()
		case interface{ Unwrap() []error }:
			if len(layer.Unwrap()) != 1 {
				return false
			}
			err = layer.Unwrap()[0]
		default:
			return false
		}
	}
}
