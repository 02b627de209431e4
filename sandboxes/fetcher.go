package sandboxes

import (
	"context"
	"fmt"
	"os"
)

// Fetcher is implemented by sandboxes with Copy files.
type Fetcher interface {
	// Fetch copies files of the sandbox into a host folder. A relative path names a file or folder in the worktree, which
	// gets the same path below the host folder. An absolute path names a folder, whose contents are copied. Fetch replaces
	// existing files and removes none. The contents are hostile: Fetch accepts only regular files, folders, and links that
	// stay in the folder. If it refused some, the error is a *RefusedError, and all others were copied. After any other
	// error, such as too many files, some files may have been copied.
	Fetch(ctx context.Context, paths []string, into *os.Root, limits FetchLimits) error
}

// FetchLimits bounds one Fetch. Zero means the default.
type FetchLimits struct {
	Entries int   // files, folders and links; default 1,000,000
	File    int64 // bytes of one file; default 1 GiB
	Bytes   int64 // bytes of all files; default 8 GiB
}

// RefusedError counts the files that a Fetch did not accept.
type RefusedError struct {
	First string // the first path, and the reason
	Count int
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d of the sandbox's files were refused; first: %s", e.Count, e.First)
}
