// Package worktree wraps everything that ralph does with git: it opens the user's repository, makes a worktree for each
// run, imports the commits and changes of agents, takes the claims that keep two ralphs off one issue, and pushes results.
// Its callers are package pool and the commands in internal/cli.
//
// The git program does all writing, except of small objects (see package git). It is started hardened: it never discovers
// a repository in a folder that an agent can write, runs no hook and never prompts. The package is safe for concurrent
// use, by goroutines and by several ralph processes on one repository.
//
// Refs that ralph owns, in the user's repository; a namespace comes after "refs/ralph/" and "refs/heads/ralph-":
//
//	refs/heads/ralph/<key>      the branch that people look at
//	refs/ralph/work/<key>       the last imported commit
//	refs/ralph/wip/<key>        uncommitted changes, saved as a commit
//	refs/ralph/old/<key>/<sha>  a tip that a later one does not contain
//	refs/ralph/old/<key>/other-<sha>  what an agent has committed outside of its branch
//	refs/ralph/old/<key>/left-<sha>  where the branch was left because it was checked out, while the work ref went on
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

// Errors for callers to check; each is wrapped with details.
var (
	// ErrTaken means that somebody else holds the claim; see [*TakenError].
	ErrTaken = claim.ErrTaken
	// ErrLost means that the claim was lost. Stop at once, and publish nothing.
	ErrLost = claim.ErrLost
	// ErrVersion means that a newer version of ralph wrote the claim, or the record of a worktree.
	ErrVersion = claim.ErrVersion
	// ErrNoBase means that no branch with commits is named or checked out.
	ErrNoBase = base.ErrNone
	// ErrDirty means that a merge would overwrite uncommitted changes of a checkout.
	ErrDirty = merge.ErrDirty
	// ErrBehind means that a merge has moved the branch, but not a checkout to which the user has switched it meanwhile.
	ErrBehind = merge.ErrBehind
	// ErrUndone means that a commit of the user's undoes a merge. It is an ErrBehind.
	ErrUndone = merge.ErrUndone
	// ErrUnfinished means that a merge, rebase or the like is unfinished in the user's checkout.
	ErrUnfinished = operation.ErrUnfinished
	// ErrFiltered means that git would run a filter, other than Git LFS, in a folder that an agent can write.
	ErrFiltered = merge.ErrFiltered
	// ErrConflict means that a rebase or merge conflicts. Nothing was changed.
	ErrConflict = merge.ErrConflict
	// ErrLate means that an import took too long. Removing such a tree sets it aside.
	ErrLate = importer.ErrLate
	// ErrMoved means that a ref is not at the expected commit.
	ErrMoved = git.ErrMoved
	// ErrUnsaved means that removing would destroy commits or changes that are not imported.
	ErrUnsaved = leftover.ErrUnsaved
	// ErrRemote means that the remote cannot be reached, or refuses. Local work is not affected.
	ErrRemote = git.ErrRemote
	// ErrUnavailable means that the remote does not answer, or has a fault of its own, after all retries. It is an ErrRemote.
	ErrUnavailable = git.ErrUnavailable
	// ErrDeclined means that the remote was reached and refused the push.
	ErrDeclined = git.ErrDeclined
)

// Spec describes what a run's worktree is made for.
type Spec = record.Spec

// Base is the commit that a run starts from.
type Base = record.Base

// Options configures a Repo. StateDir is required.
type Options struct {
	StateDir string   // ralph's state folder for this repository (mode 0700)
	Location Location // result of Locate for the folder; if zero, Open calls Locate
	// HostDir is a folder shared by all clones on this host. It holds claims that a clone could not leave on the remote; a
	// list of the machine's boots is beside it. It need not exist. Default: "left" in StateDir, which other clones do not
	// read.
	HostDir string
	// Namespace separates the refs and worktrees of two trackers on one repository; it may be empty.
	Namespace string
	// Remote is the name of the remote for claims and pushes; empty: this repository only.
	Remote string
	// Credentials returns user name and secret for the remote's host over HTTPS, and is called for each command. Git gets
	// them only in its environment. If nil, the user's own credential helpers apply.
	Credentials func(ctx context.Context) (user, secret string, err error)
	// Private lists files of the user's checkout, relative to its top, that are never copied into a worktree.
	Private []string
	// Sleep waits for a remote that does not answer, and for locks; nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Watch is called when a command with the remote begins, and end when it has ended; nil: nobody watches.
	Watch         func(remote string) (end func())
	Now           func() time.Time // clock by which claims expire, for machines that share one; nil: this machine's
	Layers        int64            // bytes for shared checkouts of base commits below private trees; 0: no layers
	LayerMinFiles int              // number of files from which a repository gets such checkouts; 0: 2,000
	MinFree       int64            // bytes that a fetch leaves free on the disk of git's folder; 0 or less: no limit
	Caps          importer.Caps    // limits of one import from a private repository
	// Log gets messages that need no action; nil discards them.
	Log   *slog.Logger
	Reads bool // the repository is only read, so that a state folder that cannot be written will do
}
