package claims

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/worktree"
)

// RemoveStrays removes worktrees and claims of runs whose records the journal has lost. After the end of early it waits for no
// remote; the rest may take until the end of hard.
func (t *Taker) RemoveStrays(early, hard context.Context, open []journal.Record, note func(key string, err error)) error {
	trees, broken := t.Run.Repo.Trees(hard) // before the claims: a run claims first, then makes its worktree
	claims, err := t.Claims(early)
	if errors.Is(err, worktree.ErrRemote) {
		return nil // the next listing reports it
	}
	if err != nil {
		return err
	}
	note("leftovers", t.tidy(hard, claims))
	if broken != nil {
		_, err := t.Run.Repo.Trees(hard)
		note("worktrees", err)
	}
	for _, tree := range trees {
		spec := tree.Spec()
		c, claimed := claims[spec.Key]
		if claimed && (c.Err != nil || tally.Held(c)) || slices.ContainsFunc(open, func(r journal.Record) bool { return r.ID == spec.Run }) {
			continue
		}
		known, err := t.Find(hard, spec.Run)
		if err != nil || known != nil && known.Kind != journal.KindIssue && (known.Ended.IsZero() || known.Tree != "") {
			continue // of a prompt or a command that is in progress or has kept it
		}
		notices, err := t.Spaces.Abandon(hard, tree)
		note(spec.Key, err)
		for _, n := range notices {
			t.Emit(journal.Event{Kind: journal.EventWarning, Run: spec.Run, Key: spec.Key, Text: n.Text, Subject: n.Subject})
		}
	}
	released := 0
	for key, c := range claims {
		if released == releasedAtOnce || early.Err() != nil {
			break
		}
		id, forget := "", false
		switch {
		case c.Deferred && !c.Gone && c.Holder.StatePath == t.place():
			known, err := t.Find(hard, c.Holder.Run)
			if known != nil || err != nil { // the run can continue
				note(key, err)
				continue
			}
			id = c.Holder.Run
		case !c.Gone || c.Err != nil:
			continue
		case c.Holder.Run != "" || c.Record.Pending != nil:
		case c.Broken, !c.Record.At.IsZero() && time.Since(c.Record.At) > recordTTL: // its record expires
			forget = true
		default:
			continue
		}
		released++
		note(key, t.releaseStray(early, key, id, forget))
	}
	return nil //nolint:nilerr // the rest is left to the next call
}

// tidy removes leftovers of killed processes and of a lost state folder.
func (t *Taker) tidy(ctx context.Context, claims map[string]worktree.ClaimState) error {
	return t.Spaces.Tidy(ctx, func(ctx context.Context, key string) (bool, error) {
		c := claims[key]
		open, err := t.Run.Store.Find(ctx, journal.Query{Pool: t.Run.Pool, Key: key, Open: true})
		// Without a key the query matches every run, but the leftover belongs to none.
		return c.Err != nil || tally.Held(c) || slices.ContainsFunc(open, func(r journal.Record) bool { return r.Key == key && !t.Dead(r) }), err
	}, func(key, text string) { t.Emit(journal.Event{Kind: journal.EventWarning, Key: key, Text: text}) })
}

const (
	// recordTTL is how long the record of an issue's runs stays on its claim. After that every clone's backlog shows the
	// outcome.
	recordTTL = 30 * 24 * time.Hour
	// releasedAtOnce is the maximum number of claims that one sweep releases. Each release takes a push, and anyone who may push
	// can write any number of claims. Later sweeps release the others.
	releasedAtOnce = 20
)

// releaseStray releases the claim of a dead holder. forget also removes its record. id is the run that the claim waits for, or
// empty.
func (t *Taker) releaseStray(ctx context.Context, key, id string, forget bool) error {
	rec := journal.Record{Run: journal.Run{ID: cmp.Or(id, journal.NewID(time.Now())), Key: key, Host: t.Host}}
	claim, err := t.Take(ctx, rec)
	if err == nil && id != "" {
		err = t.end(ctx, claim, id)
	}
	if err == nil {
		after, cancel := halt.ForRelease(ctx)
		defer cancel()
		if forget {
			err = claim.End(ctx, worktree.ClaimRecord{})
		} else {
			_, err = t.FinishReport(ctx, key, claim)
		}
		err = errors.Join(err, claim.Release(after)) // does nothing after Finish or End
	}
	if errors.Is(err, worktree.ErrTaken) || publish.Unreachable(err) {
		return nil
	}
	return err
}
