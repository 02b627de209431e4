package worktree

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Commit is one commit of a run.
type Commit = span.Commit

// Changes lists the changes that commits make; see package diff.
type Changes = diff.Changes

// Spans returns the reader that lists the commits between two tips.
func (r *Repo) Spans() *span.Reader { return r.spans }

// Log lists the commits that are in tip and not in base, oldest first.
func (r *Repo) Log(ctx context.Context, base, tip string) ([]Commit, error) {
	s, err := r.spans.Read(ctx, base, tip)
	return s.Commits, err
}

// Changes reads the changes made by the commits that are in tip and in none of bases. It calls added with every added line;
// line is valid only during the call. File contents are treated as data: no filter, text conversion or external diff runs.
func (r *Repo) Changes(ctx context.Context, bases []string, tip string, added func(path string, line []byte)) (Changes, error) {
	s, err := r.spans.Read(ctx, bases[0], tip, bases[1:]...)
	if err != nil {
		return Changes{}, err
	}
	return diff.Read(ctx, r.git, diff.Range{Bases: bases, Tip: tip, Commits: s.Names(), Parents: s.Parents}, added)
}

// Links returns the symbolic links in a commit; see [diff.Links]. The last result is cached; do not change it.
func (r *Repo) Links(ctx context.Context, commit string) (map[string]string, error) {
	return r.links.Links(ctx, r.git, commit, r.location.Top)
}

// Git returns a runner for git in the repository, hardened and with a memory limit.
func (r *Repo) Git() git.Runner { return r.git.WithMemory(git.AgentMemory) }
