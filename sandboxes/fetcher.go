package sandboxes

import (
	"context"
	"fmt"
	"os"
)

// As finds an optional interface, or any other type, in a provider or sandbox or in the one that it decorates. A decorator
// has a method Unwrap() Provider or Unwrap() Sandbox.
func As[T any](x any) (T, bool) {
	for {
		if found, ok := x.(T); ok {
			return found, true
		}
		switch decorator := x.(type) {
		case interface{ Unwrap() Provider }:
			x = decorator.Unwrap()
		case interface{ Unwrap() Sandbox }:
			x = decorator.Unwrap()
		default:
			var none T
			return none, false
		}
	}
}

// Fetcher is implemented by sandboxes with Copy files.
type Fetcher interface {
	// Fetch copies files of the sandbox into a folder of the host. A relative path, of a file or folder in the worktree,
	// gets the same name in the host's folder; an absolute path is a folder whose contents get there. Existing files are
	// replaced, and none is removed. The contents are hostile: only regular files, folders and links that stay in the
	// folder are accepted. If anything else was there, the error is a *RefusedError, and all the rest was copied. Any
	// other error, such as for too many files, may leave some of them copied.
	Fetch(ctx context.Context, paths []string, into *os.Root, limits FetchLimits) error
}

// FetchLimits bound one Fetch. Zero means the default.
type FetchLimits struct {
	Entries int   // files, folders and links; default 1,000,000
	File    int64 // bytes of one file; default 1 GiB
	Bytes   int64 // of all files; default 8 GiB
}

// RefusedError counts the files that a Fetch did not accept.
type RefusedError struct {
	First string // the first path, and why
	Count int
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d of the sandbox's files were refused; first: %s", e.Count, e.First)
}
