package hold

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/worktree"
)

// Each writing method returns worktree.ErrLost if another process has taken the claim; see [Claim.Lost].

// Mark returns the mark of the issue's report.
func (c *Claim) Mark() string { return c.ref.Record().Mark }

// Outcome returns the claim's record if it has the outcome of this run, because the run has announced or finished.
func (c *Claim) Outcome() (r worktree.ClaimRecord, ok bool) {
	r = c.ref.Record()
	return r, r.Run == c.cfg.Run && (r.Pending != nil || r.Finished)
}

// Spend records what the run has used, or may use. The run holds the claim.
func (c *Claim) Spend(ctx context.Context, run journal.Run, used agents.Usage) error {
	c.spending.Lock()
	defer c.spending.Unlock()
	rec := journal.Record{Run: run}
	rec.Facts.Usage = used
	return c.ref.SetRecord(ctx, tally.Spending(c.ref.Record(), rec.Tally()))
}

// Pusher moves the run's branch on the remote; see [worktree.Tree.Push].
type Pusher interface {
	Push(ctx context.Context, tip string, c *worktree.Claim, r worktree.ClaimRecord, finish bool) error
}

// Push pushes the branch. If the claim is the issue's own, the same step records the run's result in the claim, so that the next
// holder pays no agent for it again. left has what is still to be reported; nil: more is to be published first.
func (c *Claim) Push(ctx context.Context, tree Pusher, run journal.Record, left *report.Pending) error {
	if !c.movesWithBranch() {
		return tree.Push(ctx, run.Tip, nil, worktree.ClaimRecord{}, false)
	}
	if left == nil {
		return tree.Push(ctx, run.Tip, c.ref, tally.AfterPush(c.ref.Record(), run), false)
	}
	record, err := c.pending(run, *left)
	if err != nil {
		return err
	}
	return tree.Push(ctx, run.Tip, c.ref, record, false)
}

// PushAndFinish pushes the branch of a run with a final outcome, and finishes the issue's own claim in the same step.
func (c *Claim) PushAndFinish(ctx context.Context, tree Pusher, run journal.Record) error {
	if !c.movesWithBranch() {
		return c.Push(ctx, tree, run, nil)
	}
	return tree.Push(ctx, run.Tip, c.ref, c.finalRecord(run), true)
}

// Announce records the outcome and what is still to be reported, before anything shows it, so that no machine works the issue
// again. It does nothing if the claim has that record already, or belongs to another run.
func (c *Claim) Announce(ctx context.Context, run journal.Record, left report.Pending) error {
	if _, ok := c.Outcome(); ok || c.cfg.Shared {
		return nil
	}
	record, err := c.pending(run, left)
	if err != nil {
		return err
	}
	return c.ref.SetRecord(ctx, record)
}

// pending returns the claim's record while the run's outcome is still to be reported.
func (c *Claim) pending(run journal.Record, left report.Pending) (record worktree.ClaimRecord, err error) {
	record = c.finalRecord(run)
	record.Pending, err = json.Marshal(left)
	return record, err
}

// finalRecord returns the claim's record that remains after the run.
func (c *Claim) finalRecord(run journal.Record) worktree.ClaimRecord {
	return tally.AfterRun(c.ref.Record(), run)
}

// End gives the claim up, unless it belongs to another run. The record of an issue remains: it keeps the issue's limits on every
// machine, and keeps clones whose backlog does not show the outcome yet from working the issue again.
func (c *Claim) End(ctx context.Context, run journal.Record) error {
	switch {
	case c.cfg.Shared:
		record := c.finalRecord(run)
		record.Finished = run.Verdict.Final
		return c.ref.SetRecord(ctx, record)
	case c.cfg.Kind != journal.KindIssue:
		return c.ref.Release(ctx)
	case run.Verdict.Final:
		return c.ref.Finish(ctx, c.finalRecord(run))
	}
	return c.ref.End(ctx, c.finalRecord(run))
}

// Reserve gives the claim up for the next sweep: for the duration ttl only this run may take it. It does nothing if the claim
// belongs to another run. Leaving a lost claim is not an error.
func (c *Claim) Reserve(ctx context.Context, ttl time.Duration) error {
	if c.ref == nil || c.cfg.Shared {
		return nil
	}
	return c.ref.Reserve(ctx, c.cfg.Run, ttl)
}
