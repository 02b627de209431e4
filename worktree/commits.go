package worktree

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Commit is one commit of a run.
type Commit = span.Commit

// Changes are what commits change, see package diff.
type Changes = diff.Changes

// Spans reads which commits one commit has and another has not.
func (r *Repo) Spans() *span.Reader { return r.spans }

// Log lists the commits that tip has and base does not have, oldest first.
func (r *Repo) Log(ctx context.Context, base, tip string) ([]Commit, error) {
	s, err := r.spans.Read(ctx, base, tip)
	return s.Commits, err
}

// Changes reads what the commits change that tip has and none of the bases. added is called with every line that any of
// them adds; line is only valid during the call. Contents are data: no filter, text conversion or external diff runs.
func (r *Repo) Changes(ctx context.Context, bases []string, tip string, added func(path string, line []byte)) (Changes, error) {
	s, err := r.spans.Read(ctx, bases[0], tip, bases[1:]...)
	if err != nil {
		return Changes{}, err
	}
	return diff.Read(ctx, r.git, diff.Range{Bases: bases, Tip: tip, Commits: s.Names(), Parents: s.Parents}, added)
}

// Links are the symbolic links of a commit, see [diff.Links]. Those of the last commit are kept. The caller must not change them.
func (r *Repo) Links(ctx context.Context, commit string) (map[string]string, error) {
	return r.links.Of(ctx, r.git, commit, r.at.Top)
}

// Git runs git in the repository, hardened and with bounded memory.
func (r *Repo) Git() git.Runner { return r.git.WithMemory(git.AgentMemory) }
