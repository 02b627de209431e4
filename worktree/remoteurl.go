package worktree

import (
	"context"
	"errors"
)

// RemoteURL is the address of a remote of the checkout at top, as git uses it; empty when there is no remote of that name.
// It opens no repository, and leaves nothing behind.
func RemoteURL(ctx context.Context, top, name string) (string, error) {
	address, err := newGit(top, environ()).out(ctx, "remote", "get-url", "--", name)
	if _, failed := errors.AsType[*GitError](err); failed {
		return "", nil // there is none
	}
	return address, err
}
