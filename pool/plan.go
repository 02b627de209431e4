package pool

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Plan lists the backlog: the issues that a sweep would work, in order, and for every other open issue the reason why it would
// not. With keys it lists only these issues. It changes nothing.
func (w *Worker) Plan(ctx context.Context, keys ...string) (backlog.Plan, error) {
	return untilKilled(ctx, w, func(ctx context.Context) (backlog.Plan, error) {
		base, err := w.c.Run.Repo.Base(ctx, w.c.Run.Base)
		if err != nil && !errors.Is(err, worktree.ErrNoBase) {
			return backlog.Plan{}, err
		}
		return w.planner.Plan(ctx, backlog.Query{Base: base, Keys: keys})
	})
}

// Preview returns the plan that a sweep would have after it has closed the issues that people have merged. It closes none itself.
func (w *Worker) Preview(ctx context.Context, keys ...string) (backlog.Plan, error) {
	return untilKilled(ctx, w, func(ctx context.Context) (backlog.Plan, error) {
		base, err := w.newBase(ctx)
		var merged []tracker.Issue
		if err == nil {
			merged, err = w.planner.Reviewed(keys).Merged(ctx, base)
		}
		if err != nil {
			return backlog.Plan{}, err
		}
		return w.planner.Plan(ctx, backlog.Query{Base: base, Keys: keys, Merged: merged})
	})
}

// Maintain does the work of a sweep other than runs: it obeys commands, closes issues that people have merged, and hands requests
// over. It returns the Plan that results.
func (w *Worker) Maintain(ctx context.Context) (backlog.Plan, error) {
	return untilKilled(ctx, w, func(ctx context.Context) (backlog.Plan, error) {
		w.commands.ObeyAll(ctx, nil)
		if base, err := w.runner.Base(ctx); err == nil {
			w.closeMerged(ctx, base, nil)
		}
		plan, err := w.Plan(ctx)
		w.tellPeople(ctx, plan)
		return plan, err
	})
}

// Prompt returns the exact prompt of the first iteration of the issue's next run. It shows commands in the template but does not
// run them.
func (w *Worker) Prompt(ctx context.Context, key string) (string, error) {
	return untilKilled(ctx, w, func(ctx context.Context) (string, error) {
		issue, err := w.readNamed(ctx, key)
		if err != nil {
			return "", err
		}
		base, err := w.c.Run.Repo.Base(ctx, w.c.Run.Base)
		if err != nil {
			return "", err
		}
		rec := w.newRecord(issue)
		rec.Base = base.Name
		if _, err := w.countRuns(ctx, &rec, worktree.ClaimRecord{}); err != nil {
			return "", err
		}
		return w.runner.Prompt(ctx, issue, rec.Run)
	})
}

func (w *Worker) history(ctx context.Context, key string) (journal.History, error) {
	return journal.Runs(ctx, w.c.Run.Store, w.c.Run.Pool, key)
}
