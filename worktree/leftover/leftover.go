// Package leftover describes what runs have left in a repository and in its state folder. Package worktree finds it.
package leftover

import (
	"context"
	"errors"
)

// Branch describes the branch and the saved changes of one key.
type Branch struct {
	Key         string
	Name        string // short branch name; empty if only saved commits are left
	ContainedIn string // if Name is empty: another branch that contains the saved commits
	Tip         string // tip of the branch, or the last imported commit
	Ahead       int    // number of commits that the base lacks
	Merged      bool   // the base has all changes of the branch, as the same or as other commits
	WIP         string
	Stale       bool   // WIP was saved before the branch's latest commits
	Tree        string // path of the key's worktree, if one exists
}

// Kind is a kind of leftover, as text for people.
type Kind string

// The kinds.
const (
	Lock       Kind = "stale ref lock"                            // on one of ralph's refs, from a killed git
	Ref        Kind = "broken ref"                                // one of ralph's refs points to no commit, or to one with missing objects
	Hold       Kind = "lock of a killed merge"                    // on the index of a checkout; some of the merge's files may be there
	Checkout   Kind = "worktree entry without a folder"           // git refuses to check out its branch elsewhere
	OtherState Kind = "worktree of another state folder"          // its branch cannot be checked out here
	Record     Kind = "unreadable worktree record"                // its worktree is unknown
	Stray      Kind = "worktree without a record"                 // the record was lost, and the run's files are left
	Temp       Kind = "temporary files of an ended ralph process" // in the state folder, or fetched objects
	Trash      Kind = "removed worktree not yet deleted"          // it is being deleted, or a part of it could not be deleted
)

// Leftover is one thing that was left.
type Leftover struct {
	Kind   Kind
	Where  string // a path, or the name of a ref
	Detail string // details for people; may be empty
	Key    string // its key: it must not be removed while that is being worked; empty: none
	Safe   bool   // removing it loses nothing
	// Remove removes it or sets it aside. The returned text, which may be empty, says what happened. Nil: a person has to
	// decide.
	Remove func(ctx context.Context) (string, error)
}

// ErrUnsaved means that removing would destroy commits or changes that are not imported.
var ErrUnsaved = errors.New("not imported")

// SetAsideError reports the new place of a worktree's files, because its work cannot be imported. It is an [ErrUnsaved].
type SetAsideError struct {
	Cause      string // error of the last import
	Dir        string // folder with the files; ralph never deletes it
	BaseCommit string // commit from which the files in Dir differ; empty: Dir has all files
}

func (e *SetAsideError) Error() string { return ErrUnsaved.Error() + ": " + e.Cause + "; " + e.Files() }

func (e *SetAsideError) Unwrap() error { return ErrUnsaved }

// Files describes the place of the files, for people.
func (e *SetAsideError) Files() string {
	if e.BaseCommit != "" {
		return "its files that differ from " + e.BaseCommit + " are in " + e.Dir
	}
	return "its files are in " + e.Dir
}
