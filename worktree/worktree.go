// Package worktree is all of ralph's git: the repository it works for, the linked worktree of each run, the hand-back
// of what an agent committed, the claims that keep two ralphs off one issue, and publishing. Its callers are the
// worker in package pool and the commands in internal/cli.
//
// The git program does all that writes, but for claim commits (see object.go); it is started hardened (see git.go) and
// never discovers a repository in a folder that an agent can write, runs a hook or prompts. Everything here is safe
// for concurrent use, by several goroutines and by several ralph processes on one repository.
//
// # What an agent in a sandbox has made
//
// A sandboxed agent works in a private repository (see [Tree.Private]), and what comes back from there is data. On the
// host, no git program ever runs with the private repository as its own: its configuration, hooks, indexes, alternates,
// commit graphs, grafts and replacements are never read. Ralph reads HEAD and the refs as plain files; it
// walks the loose objects that the commits need, and gives them, like the packs that an agent has made, to
// `git index-pack` in a quarantine, which computes every name from the content and checks every object. From there only
// what is new, complete and within [Caps] gets into the user's repository, and only then does a ref move. Nothing has
// to be alive for it, so that a crash changes nothing.
//
// Uncommitted changes are read from the worktree's files, by git pinned to the worktree's own git directory, which the
// sandbox cannot see, with every filter and driver of the user's configuration switched off: .gitattributes is the
// agent's. A saved change of a filtered file (Git LFS) therefore holds the file as it was on disk.
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
	"context"
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
	// ErrDeclined: the remote is there, and does not take this push.
	ErrDeclined = errors.New("declined")
)

// Options configures a Repo. StateDir is required.
type Options struct {
	// StateDir is ralph's state folder for this repository (mode 0700): worktrees/, repos/ and locks/ are below it.
	StateDir string
	// Remote is the name of the remote that holds claims and gets branches; empty: this repository only.
	Remote string
	// Credentials give user name and secret for the remote's host over HTTPS, fresh for each command; nil leaves that to
	// the user's own credential helpers. They reach git through its environment only.
	Credentials func(ctx context.Context) (user, secret string, err error)
	// Caps bound a hand-back from a private repository.
	Caps Caps
	Log  zerolog.Logger
}
