package importer

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Err is what the sandbox could not send.
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

// UnsavedError says that uncommitted files could not be saved, such as one that nobody may read. The commits are imported.
type UnsavedError struct{ Err error }

func (e *UnsavedError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UnsavedError) Unwrap() error { return e.Err }

// OnlyUnsaved reports that an error of Import is an *UnsavedError and nothing besides.
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
