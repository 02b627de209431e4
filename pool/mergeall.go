package pool

import (
	"cmp"
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/internal/batch"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Unmerged returns the keys of open issues in review whose branches have commits that the base lacks.
func (w *Worker) Unmerged(ctx context.Context) ([]string, error) {
	return untilKilled(ctx, w, w.planner.Unmerged)
}

// MergeAll merges the branches of several issues. Branches that pass the gate together need only one run of the gate and reach
// the base in one step. If a batch fails, MergeAll tries each half. It merges a branch that fails on its own with Merge, whose
// result has the reason. Each result has the error of its issue: ErrEnded after Kill.
func (w *Worker) MergeAll(ctx context.Context, keys []string) (results []Result) {
	s, done := w.beginCall(ctx, nil)
	defer done()
	var items []*batch.Item
	var outage error // why no other issue can be merged now
	add := func(r *Result) (landed bool) {
		if r.Deferred != nil {
			r.Err = errors.Join(r.Err, r.Deferred)
		}
		results, outage = append(results, *r), errors.Join(outage, r.Unavailable)
		return r.Record.Published != ""
	}
	for _, key := range keys {
		a, r := w.newMerge(s, key)
		if a == nil {
			add(r)
			continue
		}
		items = append(items, &batch.Item{
			Branch: batch.Branch{Key: key, Name: a.rec.Branch, Title: a.rec.Title, Tip: a.tip, BuiltOn: a.rec.FormerBase},
			Renew:  a.claim.Renew, Store: a.storeMerge,
			Finish: func(undone error) {
				if a.mergedByBatch = true; undone != nil {
					a.stored.Facts.Publish = &journal.Fault{Kind: journal.FaultUndone, Text: undone.Error()}
				}
				add(a.do())
			},
			MergeAlone: func() bool {
				if s.soft.Err() != nil || outage != nil {
					defer a.unregister()
					return add(a.endClaimed(&journal.Skip{Code: journal.SkipStopped}, nil))
				}
				return add(a.do())
			},
		})
	}
	if len(items) == 0 {
		return results
	}
	rec := w.newRecord(tracker.Issue{Key: items[0].Key})
	checks := rec.Settings.Checks
	checks.Files = journal.GateFilesReport
	m := &batch.Merger{
		Repo: w.c.Run.Repo, Spaces: w.runner.Spaces(), Baselines: w.runner.Baselines(),
		Policy: w.runner.Policy(), Checks: checks, Canaries: w.c.Run.Canaries, Run: rec.ID, Asked: s.soft,
		Notify: func(text string) { w.emit(journal.Event{Kind: journal.EventSweep, Text: text}) },
	}
	m.Merge(s.hard, w.c.Run.Base, w.c.Run.ClaimTTL/3, items)
	return results
}

// newMerge makes the attempt for an issue whose branch is to be merged.
func (w *Worker) newMerge(s callContexts, key string) (*attempt, *Result) {
	t := task{merge: true, keys: []string{key}}
	if left, err := w.lookUp(s, key, &t); left.Skip != nil || err != nil {
		left.Issue, left.Err = t.issue, err
		left.Issue.Key = cmp.Or(t.issue.Key, key)
		return nil, &left
	}
	a, result := w.newAttempt(s, t)
	if a != nil && a.startErr != nil { // the attempt's own run reports the failure
		a.tip = ""
	}
	return a, result
}

// storeMerge stores the run before the batch moves the base, so that recovery can finish it.
func (a *attempt) storeMerge(ctx context.Context, s batch.Stack) error {
	if a.handle.soft.Err() != nil { // a person has stopped this run, or the call
		return context.Cause(a.handle.soft)
	}
	log, err := a.w.c.Run.Repo.Log(ctx, s.Base.Commit, a.tip)
	if err != nil {
		return err
	}
	rec := s.Record(a.rec, a.tip, len(log))
	a.stored = &rec
	return a.w.c.Run.Store.Save(ctx, rec)
}
