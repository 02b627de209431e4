package worktree

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Changes are what commits change, see package diff.
type Changes = diff.Changes

// Related reports whether two commits have a common ancestor: without one, no branch can be merged into the other.
func (r *Repo) Related(ctx context.Context, a, b string) (bool, error) {
	return r.git.Yes(ctx, "merge-base", "--end-of-options", a, b)
}

// Log lists the commits that tip has and base does not have, oldest first.
func (r *Repo) Log(ctx context.Context, base, tip string) ([]Commit, error) {
	s, err := r.readSpan(ctx, base, tip)
	return s.commits, err
}

// Changes reads what the commits change that tip has and none of the bases. added is called with every line that any of
// them adds; line is only valid during the call. Contents are data: no filter, text conversion or external diff runs.
func (r *Repo) Changes(ctx context.Context, bases []string, tip string, added func(path string, line []byte)) (Changes, error) {
	s, err := r.readSpan(ctx, bases[0], tip, bases[1:]...)
	if err != nil {
		return Changes{}, err
	}
	return diff.Read(ctx, r.git, diff.Range{Bases: bases, Tip: tip, Commits: s.commitNames(), Parents: s.parents}, added)
}

// Git reads the repository, hardened; see package diff.
func (r *Repo) Git() git.Runner { return r.git }
