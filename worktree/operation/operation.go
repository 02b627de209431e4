// Package operation detects unfinished git operations in a checkout, such as a merge.
package operation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Operation is a git operation that has begun in a checkout and not ended.
type Operation string

// The operations. Conflict means files with conflicts that belong to no other operation, for example after git stash pop.
const (
	Merge      Operation = "merge"
	Rebase     Operation = "rebase"
	CherryPick Operation = "cherry-pick"
	Revert     Operation = "revert"
	Am         Operation = "am"
	Bisect     Operation = "bisect"
	Conflict   Operation = "conflict"
)

// Unfinished returns the unfinished operation in the git directory of a checkout, or "". It tests for a rebase before the
// cherry-picks that a rebase consists of.
func Unfinished(gitDir string) Operation {
	for _, state := range []struct {
		file string
		op   Operation
	}{
		{"rebase-apply/applying", Am}, {"rebase-apply", Rebase}, {"rebase-merge", Rebase}, {"MERGE_HEAD", Merge},
		{"CHERRY_PICK_HEAD", CherryPick}, {"REVERT_HEAD", Revert}, {"BISECT_LOG", Bisect},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, state.file)); err == nil {
			return state.op
		}
	}
	todo, _, err := git.ReadRegular(filepath.Join(gitDir, "sequencer", "todo"))
	switch {
	case err != nil:
		return ""
	case strings.HasPrefix(string(todo), "revert"):
		return Revert
	}
	return CherryPick // a cherry-pick of several commits, between two of them
}

// ErrUnfinished means that an operation in a checkout has begun and not ended.
var ErrUnfinished = errors.New("a git operation is in progress")

// unfinishedError says which operation is in progress, and is an ErrUnfinished.
type unfinishedError string

func (e unfinishedError) Error() string { return string(e) }

func (unfinishedError) Is(target error) bool { return target == ErrUnfinished }

// CheckNone fails with ErrUnfinished, and names the command that ends the operation, while a checkout has an unfinished
// operation or a file with conflicts.
func CheckNone(ctx context.Context, g git.Runner, gitDir, top string) error {
	op := Unfinished(gitDir)
	if op == "" {
		conflicts, err := g.Run(ctx, "", "ls-files", "--unmerged", "-z")
		if err != nil || conflicts == "" {
			return err
		}
		op = Conflict
	}
	if op == Conflict {
		return unfinishedError(fmt.Sprintf("files in %s have conflicts; end them with: %s", top, op.End()))
	}
	return unfinishedError(fmt.Sprintf("git %s is in progress in %s; end it with: %s", op, top, op.End()))
}

// End returns the command that ends the operation.
func (o Operation) End() string {
	switch o {
	case Bisect:
		return "git bisect reset"
	case Conflict:
		return "git add FILE for each, or git reset --merge"
	}
	return "git " + string(o) + " --continue, or git " + string(o) + " --abort"
}
