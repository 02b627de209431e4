// Package claims takes the claims of issues for runs, and cleans up what dead runs have left on them. Package pool uses it.
package claims

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Source takes and lists claims. Its methods are safe for concurrent use.
type Source interface {
	// Claim claims an issue. It returns a *worktree.TakenError if the issue is claimed.
	Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error)
	// Claims lists by key the claims that are held or have a record.
	Claims(ctx context.Context) (map[string]worktree.ClaimState, error)
}

// Taker takes claims for the runs of a pool. It is safe for concurrent use.
type Taker struct {
	Source
	Run     config.Config // with its defaults
	Spaces  *workspace.Config
	Host    string                    // the name of this machine in records
	Require []string                  // labels of the issues to work
	Dead    func(journal.Record) bool // no process works on the run
	Emit    func(journal.Event)
}

// Owner returns a new owner for a claim of the host, unique to each call.
func Owner(host string) string { return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()) }

// Take claims the record's issue. It first kills processes that a dead holder on this host has left, which may belong to another
// clone or to a lost journal. If that fails, the claim still names the dead run, for the next try.
func (t *Taker) Take(ctx context.Context, r journal.Record) (*worktree.Claim, error) {
	h := worktree.Holder{Owner: Owner(r.Host), Run: r.ID, Hash: r.Hash, StatePath: t.place()}
	if m, ok := tracker.As[tracker.Marker](t.Run.Tracker); ok {
		h.Mark = m.Mark(r.Key)
	}
	claim, err := t.Claim(ctx, r.Key, h, t.Run.ClaimTTL)
	if err != nil || !journal.IsID(claim.TakenOverFrom()) { // anyone who may push can write a claim, and a mere prefix of ids would match many runs
		return claim, err
	}
	if err := t.end(ctx, claim, claim.TakenOverFrom()); err != nil {
		return nil, err
	}
	return claim, nil
}

// place identifies this state folder among those of the host.
func (t *Taker) place() string {
	sum := sha256.Sum256([]byte(t.Run.Repo.StateDir()))
	return hex.EncodeToString(sum[:8])
}

// end ends what a dead run has left running. If that fails, it leaves the claim to that run.
func (t *Taker) end(ctx context.Context, claim *worktree.Claim, dead string) error {
	err := t.Spaces.End(ctx, dead)
	if err == nil {
		return nil
	}
	after, cancel := halt.ForRelease(ctx)
	defer cancel()
	return errors.Join(err, claim.Reserve(after, dead, t.Run.ClaimTTL))
}

// Find returns the pool's run with this id, or nil.
func (t *Taker) Find(ctx context.Context, id string) (*journal.Record, error) {
	return journal.Lookup(ctx, t.Run.Store, t.Run.Pool, id)
}

// FinishReport finishes the report of another host's dead run from the record on its claim. It reports whether there was one; then
// the claim is released. What the tracker refuses is not tried again.
func (t *Taker) FinishReport(ctx context.Context, key string, claim *worktree.Claim) (finished bool, err error) {
	d := claim.Record()
	if d.Pending == nil {
		return false, nil
	}
	ours, err := t.Find(ctx, d.Run)
	if err != nil || ours != nil && ours.Ended.IsZero() {
		return false, err // settle ends it
	}
	// If Get succeeds, an error of the report is a refusal and no outage.
	if _, err := t.Run.Tracker.Get(ctx, key); publish.Unreachable(err) {
		return false, err
	}
	failed := report.WritePending(ctx, t.Run.Tracker, key, d, func(c tracker.Change) tracker.Change {
		return decide.Own(t.Run.Labels, c, t.Require, t.Run.Publish == journal.PublishMerge)
	})
	if _, away := errors.AsType[*tracker.UnavailableError](failed); away || failed != nil && ctx.Err() != nil {
		return false, failed
	}
	d.Pending = nil
	if err := claim.Finish(ctx, d); err != nil {
		return false, err
	}
	text := fmt.Sprintf("ralph died on %s after the run had ended as %s", d.Host, d.Outcome)
	if failed != nil {
		text += "; it could not be reported completely: " + failed.Error()
	}
	t.Emit(journal.Event{Kind: journal.EventRecovered, Run: d.Run, Key: key, Text: text})
	return true, nil
}

// CorrectDone corrects this clone's report of an earlier run, if it says that a sweep continues. by is the skip of an issue that
// another clone has finished since, and corrected returns the new report.
func (t *Taker) CorrectDone(ctx context.Context, issue tracker.Issue, by journal.Skip, corrected func(journal.Record, journal.Skip) string) error {
	own, ok := tracker.As[tracker.Retracter](t.Run.Tracker)
	if !ok || issue.Reported == nil || *issue.Reported == "" {
		return nil
	}
	last, err := t.Find(ctx, *issue.Reported)
	if err != nil || last == nil || last.Ended.IsZero() || last.ID >= by.Run || last.Verdict.Final || last.Verdict.Outcome == journal.Succeeded {
		return err
	}
	return own.Retract(ctx, issue.Key, tracker.Report{Run: last.ID, Body: corrected(*last, by)}, tracker.Change{})
}
