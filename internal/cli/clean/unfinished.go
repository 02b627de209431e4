package clean

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/pool/claims"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// unfinished adds the keys of which nothing is left but an unfinished run.
func (c *cleaner) unfinished(left []remains) []remains {
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		key := c.open[id].Key
		if c.discard && !slices.ContainsFunc(left, func(l remains) bool { return l.key == key }) {
			left = append(left, remains{key: key})
		}
	}
	return left
}

// openRuns lists the unfinished runs of a key.
func (c *cleaner) openRuns(key string) (runs []journal.Record) {
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		if r := c.open[id]; r.Key == key {
			runs = append(runs, r)
		}
	}
	return runs
}

// dead reports whether a run is unfinished, and no process of this host works on it.
func (c *cleaner) dead(run string) bool {
	r, open := c.open[run]
	return open && r.Host == c.host && (r.PID == 0 || !proc.Alive(r.PID, r.Process))
}

// giveUp ends a dead run, and discards its worktrees.
func (c *cleaner) giveUp(ctx context.Context, r journal.Record, trees []*worktree.Tree) error {
	if c.dry {
		return nil
	}
	repo := c.local
	if r.Kind == journal.KindIssue {
		repo = c.p.Repo
	}
	claim, err := repo.Claim(ctx, r.Key, worktree.Holder{Owner: "clean", Run: r.ID}, time.Minute)
	if errors.Is(err, worktree.ErrTaken) {
		return errors.New("it is being worked")
	}
	if err != nil {
		return err
	}
	return claims.GiveUp(ctx, claim, c.p.Journal, r, time.Hour, func(ctx context.Context) error {
		for _, t := range trees {
			if s := t.Spec(); s.Run != r.ID && s.ParentRun != r.ID {
				continue
			}
			if err := c.endSandboxes(ctx, t); err != nil { // its agent may still run
				return err
			}
			if err := t.Discard(ctx); err != nil {
				return err
			}
		}
		return tempdir.RemoveRun(r.ID)
	})
}
