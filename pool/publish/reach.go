package publish

import (
	"errors"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Unreachable reports whether the tracker or the remote cannot be used now, for any issue.
func Unreachable(err error) bool {
	if errors.Is(err, tracker.ErrNotFound) { // only this issue is missing
		return false
	}
	_, away := errors.AsType[*tracker.UnavailableError](err)
	_, refused := errors.AsType[*tracker.RefusedError](err)
	return away || refused || errors.Is(err, worktree.ErrRemote)
}

// Outage reports whether the tracker or the remote does not answer. This is temporary and not the run's fault.
func Outage(err error) bool {
	_, away := errors.AsType[*tracker.UnavailableError](err)
	return away || errors.Is(err, worktree.ErrUnavailable)
}
