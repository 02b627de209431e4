// Package saved tells whose uncommitted changes are saved. Package worktree uses it.
package saved

import (
	"context"
	"strings"

	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

const subject = "Uncommitted changes of run "

// Message returns the message of a commit with the uncommitted changes of a run.
func Message(run string) string { return subject + run }

// Earlier is the changes of an earlier run. It is zero if there are none.
type Earlier struct {
	Commit string
	Run    string // empty: unknown
}

// Whose returns the commit if its changes are those of the run, and otherwise the earlier run's. The commit may be "".
func Whose(ctx context.Context, g git.Runner, commit, run string) (own string, e Earlier, err error) {
	if commit == "" {
		return "", Earlier{}, nil
	}
	of, _, err := read(ctx, g, commit)
	if err == nil && of != run {
		return "", Earlier{commit, of}, nil
	}
	return commit, Earlier{}, err
}

// Before reports whether the tip has the changes of the commit, and returns the newest changes of another run than this one that
// the tip lacks, among the commit and those that it has replaced: its second parent, and so on.
func Before(ctx context.Context, g git.Runner, commit, run, tip string) (committed bool, e Earlier, err error) {
	if committed, err = diff.Same(ctx, g, commit, tip); err != nil {
		return false, Earlier{}, err
	}
	last := run // of each run only what it saved last counts
	for commit != "" {
		of, previous, err := read(ctx, g, commit)
		if err != nil {
			return false, Earlier{}, err
		}
		if of != run && (of == "" || of != last) {
			if has, err := diff.Same(ctx, g, commit, tip); err != nil || !has {
				return committed, Earlier{commit, of}, err
			}
		}
		commit, last = previous, of
	}
	return committed, Earlier{}, nil
}

// read returns the run whose changes the commit has, if it is known, and the commit that it has replaced.
func read(ctx context.Context, g git.Runner, commit string) (of, previous string, err error) {
	out, err := g.Output(ctx, "show", "--no-patch", "--format=%P%n%s", "--end-of-options", commit, "--")
	if err != nil {
		return "", "", err
	}
	parents, title, _ := strings.Cut(out, "\n")
	if name, ok := strings.CutPrefix(title, subject); ok {
		of = name
	}
	_, previous, _ = strings.Cut(parents, " ")
	return of, previous, nil
}
