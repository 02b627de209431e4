package worktree

import "context"

// Remote is the name of the remote that holds claims and gets branches; empty when there is none.
func (r *Repo) Remote() string { return r.opts.Remote }

// RemoteBranch is where the branch stands on the remote, with its commits brought here; empty when the remote has none.
func (r *Repo) RemoteBranch(ctx context.Context, branch string) (string, error) {
	return r.remoteBranch(ctx, branch)
}

// Contains reports whether commit is outer, or an ancestor of it.
func (r *Repo) Contains(ctx context.Context, outer, commit string) (bool, error) {
	return r.git.contains(ctx, outer, commit)
}

// Log lists the commits that tip has and base has not, oldest first.
func (r *Repo) Log(ctx context.Context, base, tip string) ([]Commit, error) {
	s, err := r.readSpan(ctx, base, tip)
	return s.commits, err
}

// Clean reports whether the worktree has no uncommitted changes.
func (t *Tree) Clean(ctx context.Context) (bool, error) {
	if t.record().Private {
		unlock, err := t.repo.lock(ctx, t.Spec().Key)
		if err != nil {
			return false, err
		}
		defer unlock()
		l, err := t.inspect(ctx)
		return err == nil && len(l.changes) == 0, err
	}
	l, err := t.git().status(ctx)
	return err == nil && len(l.changes) == 0, err
}
