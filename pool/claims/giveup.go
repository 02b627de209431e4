package claims

import (
	"context"
	"errors"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// GiveUp ends a run on which no process works, for a person who does not want its work. It holds the claim while remove removes
// what the run has left, and releases it. If remove fails, the run stays unfinished.
func GiveUp(ctx context.Context, claim *worktree.Claim, store journal.Store, r journal.Record, ttl time.Duration, remove func(context.Context) error) error {
	after, cancel := halt.ForRelease(ctx)
	defer cancel()
	if err := remove(ctx); err != nil {
		return errors.Join(err, claim.Reserve(after, r.ID, ttl))
	}
	if r.Kind == journal.KindIssue {
		r.Earlier = tally.BeforeDeadRun(r, claim.Record())
		r.Verdict = journal.Verdict{Outcome: journal.Interrupted, Reason: journal.Reason{Code: journal.ReasonAsked}}
		r.Facts.SignalTip = "" // no later run publishes its commits
	}
	r.Stage, r.Ended, r.SandboxMayRun = journal.StageEnd, time.Now(), false
	err := store.Save(ctx, r)
	if err == nil && r.Kind == journal.KindIssue {
		left := tally.AfterRun(claim.Record(), r)
		left.Passed = nil
		err = claim.End(after, left)
	}
	return errors.Join(err, claim.Release(after))
}

// GiveUp ends those runs of an issue on which no process of this host works. Work that is not imported is set aside.
func (t *Taker) GiveUp(ctx context.Context, runs journal.History) error {
	for _, r := range runs {
		if !r.Ended.IsZero() || r.Host != t.Host || !t.Dead(r) {
			continue
		}
		claim, err := t.Take(ctx, r)
		if err != nil {
			return err
		}
		if err := GiveUp(ctx, claim, t.Run.Store, r, t.Run.ClaimTTL, func(ctx context.Context) error { return t.setAside(ctx, r) }); err != nil {
			return err
		}
	}
	return nil
}

// setAside ends what is left of a run, and removes its worktree.
func (t *Taker) setAside(ctx context.Context, r journal.Record) error {
	if err := t.Spaces.End(ctx, r.ID); err != nil {
		return err
	}
	trees, err := t.Run.Repo.Trees(ctx)
	for _, tree := range trees { // a broken record of another run does not matter
		if tree.Spec().Run != r.ID {
			continue
		}
		err := tree.SetAside(ctx, errors.New("a person has given the run up"))
		if aside, ok := errors.AsType[*worktree.SetAsideError](err); ok {
			t.Emit(journal.Event{Kind: journal.EventWarning, Run: r.ID, Key: r.Key, Text: "work of the run is not imported; " + aside.Files()})
		} else if err != nil {
			return err
		}
		return nil
	}
	return err
}
