// Package worktree is all of ralph's git: the repository it works for, the linked worktree of each run, the hand-back
// of what an agent committed, the claims that keep two ralphs off one issue, and publishing. Its callers are the
// worker in package pool and the commands in internal/cli.
//
// The git program does all that writes, but for claim commits (see object.go); it is started hardened (see git.go) and
// never discovers a repository in a folder that an agent can write, runs a hook or prompts. Everything here is safe
// for concurrent use, by several goroutines and by several ralph processes on one repository.
//
// Refs that ralph owns, in the user's repository:
//
//	refs/heads/ralph/<key>      the branch people look at
//	refs/ralph/work/<key>       the last commit handed back
//	refs/ralph/wip/<key>        uncommitted changes, saved as a commit
//	refs/ralph/old/<key>/<sha>  a tip that a later one does not contain
//	refs/ralph/claims/<key>     the claim; on the remote where there is one
package worktree

import (
	"errors"

	"github.com/rs/zerolog"
)

// Errors that callers act on; each is wrapped with what and where.
var (
	// ErrTaken: somebody else holds the claim; see *TakenError.
	ErrTaken = errors.New("issue is claimed")
	// ErrLost: the claim is not ours any more. Stop at once, write nothing outward.
	ErrLost = errors.New("claim is lost")
	// ErrDirty: a checkout has uncommitted changes that would be overwritten.
	ErrDirty = errors.New("uncommitted changes")
	// ErrConflict: a rebase or merge conflicts; everything is as it was before.
	ErrConflict = errors.New("conflict")
	// ErrMoved: a ref is not at the expected commit any more.
	ErrMoved = errors.New("ref has moved")
	// ErrKept: removing would destroy commits or changes that are on no ref of ralph's.
	ErrKept = errors.New("not handed back")
	// ErrRemote: the remote cannot be reached or refuses; local work is not affected.
	ErrRemote = errors.New("remote is not available")
)

// Options configures a Repo. StateDir is required.
type Options struct {
	// StateDir is ralph's state folder for this repository (mode 0700): worktrees/ and locks/ are below it.
	StateDir string
	// Remote is the name of the remote that holds claims and gets branches; empty: this repository only.
	Remote string
	Log    zerolog.Logger
}
