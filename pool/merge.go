package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/review"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Merge takes the commits on an issue's branch through a run without an agent: they are rebased onto the base branch and
// checked there, the base branch moves, and the issue is closed. The caller is a person who has looked at them: changed checks
// are no obstacle. A merge that was left is finished. Otherwise it is like Work. The base has to be a branch of this repository.
func (w *Worker) Merge(ctx context.Context, key string) (Result, error) {
	return w.single(ctx, key, task{merge: true}, []string{key})
}

// leftMerge finishes a merge of the issue that was left on its way. Without a skip there was none.
func (w *Worker) leftMerge(ctx context.Context, issue tracker.Issue) (Result, error) {
	left, err := w.recover(ctx, issue.Key)
	n := len(left.Finished)
	if err == nil && len(left.Broken) == 0 && (n == 0 || left.Finished[n-1].Settings.Publish != journal.PublishMerge) {
		return Result{}, nil
	}
	r := Result{Issue: issue, Finished: left.Finished, Unavailable: left.Unavailable, Skip: &journal.Skip{Code: journal.SkipRecovered}}
	if len(left.Broken) > 0 {
		r.Skip = &left.Broken[0].Skip
		err = errors.New(r.Skip.Detail)
	}
	return r, err
}

// mergeBase is the base that a merge moves, and the commit that it gets. It fails when the branch of the issue has nothing for
// it. Where the branch on the remote is another there is no such commit yet.
func (w *Worker) mergeBase(ctx context.Context, key string) (base worktree.Base, tip string, err error) {
	if base, err = w.cfg.Repo.Base(ctx, w.cfg.Base); err != nil {
		return base, "", err
	}
	branch := w.c.BranchPrefix + key
	remote, err := w.cfg.Repo.RemoteBranch(ctx, branch)
	if err != nil {
		return base, "", err
	}
	refs, err := w.cfg.Repo.Git().Refs(ctx, "refs/heads/"+branch)
	if err != nil {
		return base, "", err
	}
	here := refs["refs/heads/"+branch]
	if here == remote || remote == "" {
		tip = here
	}
	for _, at := range []string{here, remote} {
		if at == "" {
			continue
		}
		if there, err := w.cfg.Repo.Contains(ctx, base.Commit, at); err != nil || !there {
			return base, tip, cmp.Or(err, publish.InTheWay(ctx, w.cfg.Repo, base, at))
		}
	}
	if here+remote == "" {
		return base, "", fmt.Errorf("there is no branch %s yet", branch)
	}
	return base, "", fmt.Errorf("%s has no commit that %s lacks", branch, base.Name)
}

// closeMerged closes the issues whose commits a person has merged, and reports whether there was one. No failure ends a
// sweep.
func (w *Worker) closeMerged(ctx context.Context, base worktree.Base, keys []string) (closed bool) {
	b := w.reviewed(keys)
	list, err := b.Merged(ctx, base)
	for _, i := range list {
		if err = w.cfg.Tracker.Change(ctx, i.Key, b.Change()); err != nil {
			break
		}
		closed = true
		w.emit(journal.Event{Kind: journal.EventMerged, Key: i.Key, Title: i.Title, Text: "merged into " + base.Name + " by hand; the issue is closed"})
	}
	if err != nil && !run.Unreachable(err) && ctx.Err() == nil {
		w.emit(journal.Event{Kind: journal.EventProblem, Text: "merged issues are not closed: " + err.Error()})
	}
	return closed
}

// reviewed is where to look for issues that a person has merged.
func (w *Worker) reviewed(keys []string) review.Backlog {
	return review.Backlog{
		Repo: w.cfg.Repo, Tracker: w.cfg.Tracker, Store: w.cfg.Store, Pool: w.cfg.Name, Labels: w.cfg.Labels, Claims: w.c.Claims.Claims, Keys: keys,
		PickUp: w.c.Require[0],
	}
}
