package pool

import (
	"cmp"
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Merge merges an issue's branch in a run without an agent: it rebases the commits onto the base branch, checks them there, moves
// the base branch and closes the issue. The caller is a person who has read the commits, so changed checks are allowed. Merge
// continues an unfinished merge. In all else it works like Work. The base must be a branch of this repository.
func (w *Worker) Merge(ctx context.Context, key string) (Result, error) {
	return w.workOne(ctx, nil, key, task{merge: true, keys: []string{key}})
}

// finishMerge continues an unfinished merge of the issue. A result without a skip means that there was none.
func (w *Worker) finishMerge(s callContexts, issue tracker.Issue) (Result, error) {
	left, err := w.recover(s, issue.Key)
	r := Result{Issue: issue, Finished: left.Finished, Unavailable: left.Unavailable, Skip: &journal.Skip{Code: journal.SkipRecovered}}
	n := len(left.Finished)
	switch {
	case left.Unavailable != nil:
		err = cmp.Or(err, left.Unavailable)
	case len(left.Broken) > 0:
		r.Skip = &left.Broken[0].Skip
		err = errors.New(r.Skip.Detail)
	case err == nil && (n == 0 || left.Finished[n-1].Settings.Publish != journal.PublishMerge):
		return Result{}, nil
	}
	return r, err
}

// closeMerged closes the issues whose commits a person has merged, and reports whether it closed any. Its failures end no sweep.
func (w *Worker) closeMerged(ctx context.Context, base worktree.Base, keys []string) (closed bool) {
	b := w.planner.Reviewed(keys)
	list, err := b.Merged(ctx, base)
	for _, i := range list {
		if err = w.c.Run.Tracker.Change(ctx, i.Key, b.Change()); err != nil {
			break
		}
		closed = true
		w.emit(journal.Event{Kind: journal.EventMerged, Key: i.Key, Title: i.Title, Text: "merged into " + base.Name + " by hand; the issue is closed"})
	}
	if err != nil && !publish.Unreachable(err) && ctx.Err() == nil {
		w.emit(journal.Event{Kind: journal.EventProblem, Text: "merged issues are not closed: " + err.Error()})
	}
	return closed
}
