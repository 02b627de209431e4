package merge

import (
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// ConflictError is an ErrConflict in a rebase of a branch.
type ConflictError struct {
	Text     string
	Top      string   // top of the user's checkout
	Commands []string // git's arguments by which a person solves it, quoted for a shell
	Hopeless bool     // more commits on the branch do not solve it
}

func (e *ConflictError) Error() string {
	in := "git -C " + git.Quote(e.Top) + " "
	return e.Text + "; to solve it by hand: " + in + strings.Join(e.Commands, " && "+in)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
