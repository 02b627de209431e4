// Package worktree is all of ralph's git: the repository it works for, the worktree of each run, the import of what an
// agent committed, the claims that keep two ralphs off one issue, and publishing. Its callers are package pool and the
// commands in internal/cli.
//
// The git program does all writing (except small objects, see package git). It is started hardened, never discovers a
// repository in a folder that an agent can write, runs no hook and never prompts. Everything here is safe for concurrent
// use, by goroutines and by several ralph processes on one repository.
//
// Refs that ralph owns, in the user's repository; a namespace comes after "refs/ralph/" and "refs/heads/ralph-":
//
//	refs/heads/ralph/<key>      the branch that people look at
//	refs/ralph/work/<key>       the last imported commit
//	refs/ralph/wip/<key>        uncommitted changes, saved as a commit
//	refs/ralph/old/<key>/<sha>  a tip that a later one does not contain
//	refs/ralph/old/<key>/other-<sha>  what an agent has committed outside of its branch
//	refs/ralph/claims/<key>     the claim; on the remote where there is one
package worktree

import (
	"context"
	"log/slog"
	"time"

	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/merge"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Errors that callers act on; each is wrapped with details.
var (
	// ErrTaken: somebody else holds the claim; see [*TakenError].
	ErrTaken = claim.ErrTaken
	// ErrLost: the claim is not ours any more. Stop at once, write nothing outward.
	ErrLost = claim.ErrLost
	// ErrVersion: a newer version of ralph wrote the claim, or the record of a worktree.
	ErrVersion = claim.ErrVersion
	// ErrNoBase: no branch with commits is named or checked out.
	ErrNoBase = base.ErrNone
	// ErrDirty: a checkout has uncommitted changes that would be overwritten.
	ErrDirty = merge.ErrDirty
	// ErrUnended: a merge, a rebase or the like has not ended in the user's checkout.
	ErrUnended = operation.ErrUnended
	// ErrFiltered: git would run a filter of the user's configuration, other than Git LFS, among files of an agent's.
	ErrFiltered = merge.ErrFiltered
	// ErrConflict: a rebase or merge conflicts; everything is as it was before.
	ErrConflict = merge.ErrConflict
	// ErrLate: an import did not end in time. Such a tree is set aside when it is removed.
	ErrLate = importer.ErrLate
	// ErrMoved: a ref is not at the expected commit any more.
	ErrMoved = git.ErrMoved
	// ErrKept: removing would destroy commits or changes that are not imported.
	ErrKept = leftover.ErrKept
	// ErrRemote: the remote cannot be reached, or refuses; local work is not affected.
	ErrRemote = git.ErrRemote
	// ErrAway: it does not answer, or has a fault of its own, however often it was tried. It is an ErrRemote.
	ErrAway = git.ErrAway
	// ErrDeclined: the remote was reached and does not accept this push.
	ErrDeclined = git.ErrDeclined
)

// Spec is what one run's worktree is made for.
type Spec = record.Spec

// Base is the commit that a run starts from.
type Base = record.Base

// Options configures a Repo. StateDir is required.
type Options struct {
	StateDir string   // ralph's state folder for this repository (mode 0700)
	Location Location // what Locate has found for the folder; zero: Open looks for it
	// HostDir is a folder that all clones on this host share. It has the claims that a clone could not leave on the remote, and beside
	// it is a list of the machine's boots. It need not exist; default: "left" in StateDir, which other clones do not read.
	HostDir string
	// Namespace keeps the refs and worktrees of two trackers on one repository apart; it may be empty.
	Namespace string
	// Remote is the name of the remote that holds claims and gets branches; empty: this repository only.
	Remote string
	// Credentials give user name and secret for the remote's host over HTTPS, afresh for each command; nil leaves that to
	// the user's own credential helpers. Git gets them in its environment only.
	Credentials func(ctx context.Context) (user, secret string, err error)
	// Private are files of the user's checkout, relative to its top, that are never copied into a worktree.
	Private []string
	// Sleep waits between two tries of a remote that does not answer; nil: the real time.
	Sleep      func(ctx context.Context, d time.Duration) error
	Now        func() time.Time // the clock by which claims expire, for machines that share one; nil: this machine's
	Layers     int64            // bytes for the checkouts of base commits over which private trees are laid; 0: no tree is
	LayersFrom int              // number of files from which on a repository has such checkouts; 0: 2,000
	MinFree    int64            // bytes that a fetch leaves free on the disk of git's folder; 0 or less: any
	Caps       importer.Caps    // limit one import from a private repository
	// Log gets what nobody has to act on; nil discards it.
	Log *slog.Logger
}
