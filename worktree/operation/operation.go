// Package operation knows what git has begun in a checkout and not ended, such as a merge.
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

// Operation is what git has begun in a checkout and not ended.
type Operation string

// The operations. Conflict is files with conflicts that no other operation accounts for, such as those of git stash pop.
const (
	Merge      Operation = "merge"
	Rebase     Operation = "rebase"
	CherryPick Operation = "cherry-pick"
	Revert     Operation = "revert"
	Am         Operation = "am"
	Bisect     Operation = "bisect"
	Conflict   Operation = "conflict"
)

// In reads the operation off the git directory of a checkout; empty when there is none. A rebase stands before the
// cherry-pick that it is made of.
func In(gitDir string) Operation {
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
	return CherryPick // of several commits, between two of them
}

// ErrUnended says that an operation has begun in a checkout and not ended.
var ErrUnended = errors.New("has not ended")

// Settled fails with ErrUnended, and the command that ends it, while there is an operation in a checkout, or a file with
// conflicts.
func Settled(ctx context.Context, g git.Runner, gitDir, top string) error {
	op := In(gitDir)
	if op == "" {
		conflicts, err := g.Run(ctx, "", "ls-files", "--unmerged", "-z")
		if err != nil || conflicts == "" {
			return err
		}
		op = Conflict
	}
	return fmt.Errorf("%s %w in %s; end it with: %s", op, ErrUnended, top, op.end())
}

// end is the command that ends the operation.
func (o Operation) end() string {
	switch o {
	case Bisect:
		return "git bisect reset"
	case Conflict:
		return "git add FILE for each, or git reset --merge"
	}
	return "git " + string(o) + " --continue, or git " + string(o) + " --abort"
}
