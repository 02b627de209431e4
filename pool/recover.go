package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Recovered is the result of Recover.
type Recovered struct {
	Finished    []journal.Record  // runs that had only their last stages left, and have ended now
	Interrupted []journal.Record  // runs that were cut off, and have ended so; the next sweep continues their work
	Broken      []backlog.Skipped // runs that could not be recovered now
	Unavailable error             // why a run could not be claimed, published or reported, if other runs would fail in the same way
}

// Recover continues every run of this host whose process has died: it kills the processes that are left, imports the
// commits, does the stages that are left, and releases the claim. Runs of live processes are not touched. A run that
// cannot be recovered does not stop the others. When ctx ends, what is left is left to the next call.
func (w *Worker) Recover(ctx context.Context) (Recovered, error) {
	if w.life.Err() != nil {
		return Recovered{}, ErrEnded
	}
	ctx, hard, done := w.call(ctx)
	defer done()
	return w.recover(ctx, hard, "")
}

// recover is Recover, for one issue if there is a key.
func (w *Worker) recover(soft, ctx context.Context, key string) (r Recovered, err error) {
	open, err := w.c.Run.Store.Find(ctx, journal.Query{Pool: w.c.Run.Name, Key: key, Kind: journal.KindIssue, Open: true})
	if err != nil {
		return r, err
	}
	note := func(key string, err error) {
		if err == nil {
			return
		}
		s := journal.Skip{Code: journal.SkipBroken, Detail: "recover: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
		r.Broken = append(r.Broken, backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: s})
		w.emit(journal.Event{Kind: journal.EventProblem, Key: key, Skip: &s})
	}
	for _, rec := range open {
		if soft.Err() != nil {
			return r, nil //nolint:nilerr // the rest is left to the next call
		}
		if !w.runner.Dead(rec) && (rec.Host == w.runner.Host() || !w.abandoned(ctx, rec)) {
			continue
		}
		err := w.recoverRun(soft, ctx, rec, &r)
		if publish.Unreachable(err) {
			r.Unavailable = err
		}
		if ctx.Err() == nil { // otherwise every call fails
			note(rec.Key, err)
		}
	}
	if key != "" || soft.Err() != nil {
		return r, nil //nolint:nilerr // as above
	}
	return r, w.recoverStrays(ctx, open, note)
}

// abandoned reports that the claim of another host's run is free. The journal is on this machine, so its host name has changed.
func (w *Worker) abandoned(ctx context.Context, r journal.Record) bool {
	held, err := w.c.Claims.Claims(ctx)
	c, ok := held[r.Key]
	return err == nil && c.Err == nil && (!ok || c.Gone || c.Holder.Run != r.ID)
}

// recoverRun claims the issue of a dead run and settles the run.
func (w *Worker) recoverRun(soft, ctx context.Context, rec journal.Record, r *Recovered) error {
	claim, err := w.claim(ctx, rec)
	taken, isTaken := errors.AsType[*worktree.TakenError](err)
	switch {
	case isTaken:
		if taken.Holder.Run == "" {
			return nil // it is being released
		}
		if known, err := w.find(ctx, taken.Holder.Run); known != nil || err != nil {
			return err // another process with this journal holds the claim, and settles the run itself
		}
	case errors.Is(err, worktree.ErrRemote):
		w.emit(journal.Event{Kind: journal.EventWarning, Run: rec.ID, Key: rec.Key, Text: "not recovered yet: " + err.Error()})
		r.Unavailable = err
		return nil
	case err != nil:
		return err
	}
	after, cancel := workspace.Outlasting(ctx)
	defer cancel()
	now, err := w.find(ctx, rec.ID)
	if err != nil {
		return errors.Join(err, w.leave(after, claim, rec))
	}
	if now == nil || !now.Ended.IsZero() || !w.runner.Dead(*now) && now.Host == w.runner.Host() { // another process was faster
		if claim == nil {
			return nil
		}
		return claim.Release(after)
	}
	_, err = w.settle(soft, ctx, *now, claim, false, r)
	return err
}

// leave keeps the claim of a dead run for the next try to recover it.
func (w *Worker) leave(ctx context.Context, claim *worktree.Claim, rec journal.Record) error {
	if claim == nil {
		return nil
	}
	return claim.Leave(ctx, rec.ID, w.runner.LeftFor(rec.Stage))
}

func (w *Worker) find(ctx context.Context, id string) (*journal.Record, error) {
	return journal.Lookup(ctx, w.c.Run.Store, w.c.Run.Name, id)
}

// settleEarlier settles the issue's dead runs under the attempt's claim. over reports that the issue needs no new run now.
func (a *attempt) settleEarlier(soft, ctx context.Context) (over bool, err error) {
	w := a.w
	runs, err := w.history(ctx, a.rec.Key)
	if err != nil {
		return false, err
	}
	var settled Recovered
	for _, rec := range runs {
		if rec.ID == a.rec.ID || !rec.Ended.IsZero() || !w.runner.Dead(rec) {
			continue
		}
		over, err = w.settle(soft, ctx, rec, a.claim, true, &settled)
		if a.finished = settled.Finished; over || err != nil {
			return over, err
		}
	}
	return w.onBehalf(ctx, a.rec.Key, a.claim)
}

// settle ends one dead run. A run that had finished its work continues at its stage; any other ends as interrupted. Without a
// claim another process has the issue, and nothing is reported. shared means that another run uses the claim afterwards. over
// reports that the issue needs no new run now.
func (w *Worker) settle(soft, ctx context.Context, rec journal.Record, claim *worktree.Claim, shared bool, r *Recovered) (over bool, err error) {
	after, cancel := workspace.Outlasting(ctx)
	defer cancel()
	giveUp := func(err error) (bool, error) {
		if !shared {
			err = errors.Join(err, w.leave(after, claim, rec))
		}
		return false, err
	}
	if err := w.runner.Spaces().End(ctx, rec.ID); err != nil {
		return giveUp(&issueError{err})
	}
	if told, overtaken := tally.Overtaken(rec, claim); overtaken {
		rec.Facts.Reported = told
		if !shared {
			if err := claim.Release(after); err != nil {
				return false, err
			}
		}
		claim = nil
	}
	if rec.Stage == journal.StageClaim { // its earlier runs are not counted yet
		if _, err := w.count(ctx, &rec, claim.Record()); err != nil {
			return giveUp(err)
		}
	}
	if claim != nil {
		rec.Earlier = tally.Onto(rec, claim.Record())
	}
	rec.Elsewhere = claim == nil && rec.Stage.Before(journal.StageRelease)
	issue, err := w.c.Run.Tracker.Get(ctx, rec.Key)
	if publish.Unreachable(err) { // try again later
		rec.PID = 0
		return false, errors.Join(err, w.leave(after, claim, rec), w.c.Run.Store.Save(after, rec))
	}
	if err != nil {
		issue = tracker.Issue{Key: rec.Key, Title: rec.Title, URL: rec.URL}
	}
	how := "ralph had died at stage "
	if rec.PID == 0 {
		how = "was left at stage "
	}
	own := !rec.Stage.Before(journal.StageVerify) && rec.Facts.Cut == ""
	res := w.runner.Do(ctx, run.Task{
		Record: rec, Resume: true, Claim: claim, Shared: shared && !own, Issue: issue, Unfit: decide.StillFit(w.c.Run.Labels, w.c.Exclude, rec), Edited: rec.Differs, Soft: soft,
	})
	w.emit(journal.Event{Kind: journal.EventRecovered, Run: rec.ID, Key: rec.Key, Title: rec.Title, Text: how + string(rec.Stage)})
	v := res.Record.Verdict
	over = own || v.Final
	switch {
	case res.Deferred != nil:
	case !over || !v.Final && v.Outcome == journal.Interrupted:
		r.Interrupted = append(r.Interrupted, res.Record)
	default:
		r.Finished = append(r.Finished, res.Record)
	}
	return over, res.Deferred
}

// onBehalf finishes the report of another host's dead run, from the record on its claim. It reports whether there was one; the
// claim is released then. What the tracker refuses is not tried again.
func (w *Worker) onBehalf(ctx context.Context, key string, claim *worktree.Claim) (finished bool, err error) {
	d := claim.Record()
	if d.Pending == nil {
		return false, nil
	}
	ours, err := w.find(ctx, d.Run)
	if err != nil || ours != nil && ours.Ended.IsZero() {
		return false, err // settle ends it
	}
	// If the tracker can read the issue but not take the report, it refuses the report.
	if _, err := w.c.Run.Tracker.Get(ctx, key); publish.Unreachable(err) {
		return false, err
	}
	failed := report.WritePending(ctx, w.c.Run.Tracker, key, d)
	if _, away := errors.AsType[*tracker.UnavailableError](failed); away || failed != nil && ctx.Err() != nil {
		return false, failed
	}
	d.Pending = nil
	if err := claim.Finish(ctx, d); err != nil {
		return false, err
	}
	text := fmt.Sprintf("ralph had died on %s after its run was %s", d.Host, d.Outcome)
	if failed != nil {
		text += "; not all of it could be reported: " + failed.Error()
	}
	w.emit(journal.Event{Kind: journal.EventRecovered, Run: d.Run, Key: key, Text: text})
	return true, nil
}

// recoverStrays removes worktrees and claims of runs that the journal does not know: their records were lost.
func (w *Worker) recoverStrays(ctx context.Context, open []journal.Record, note func(key string, err error)) error {
	trees, broken := w.c.Run.Repo.Trees(ctx) // before the claims: a run claims first, then makes its worktree
	claims, err := w.c.Claims.Claims(ctx)
	if errors.Is(err, worktree.ErrRemote) {
		return nil // the next listing reports it
	}
	if err != nil {
		return err
	}
	note("leftovers", w.tidy(ctx, claims))
	if broken != nil {
		_, err := w.c.Run.Repo.Trees(ctx)
		note("worktrees", err)
	}
	for _, t := range trees {
		spec := t.Spec()
		c, claimed := claims[spec.Key]
		if claimed && (c.Err != nil || tally.Held(c)) || slices.ContainsFunc(open, func(r journal.Record) bool { return r.ID == spec.Run }) {
			continue
		}
		if known, err := w.find(ctx, spec.Run); err != nil || known != nil && known.Kind != journal.KindIssue {
			continue // of a prompt or a command
		}
		told, err := w.runner.Spaces().Abandon(ctx, t)
		note(spec.Key, err)
		for _, n := range told {
			w.emit(journal.Event{Kind: journal.EventWarning, Run: spec.Run, Key: spec.Key, Text: n.Text, About: n.About})
		}
	}
	old := 0
	for key, c := range claims {
		switch {
		case c.Waits && !c.Gone && c.Holder.Place == w.runner.Place():
			known, err := w.find(ctx, c.Holder.Run)
			if known == nil && err == nil { // the run cannot continue
				err = w.releaseStray(ctx, key, c.Holder.Run, false)
			}
			note(key, err)
		case !c.Gone || c.Err != nil:
		case c.Holder.Run != "" || c.Record.Pending != nil:
			note(key, w.releaseStray(ctx, key, "", false))
		case c.Broken, old < forgottenAtOnce && !c.Record.At.IsZero() && time.Since(c.Record.At) > recordLife: // its record expires
			old++
			note(key, w.releaseStray(ctx, key, "", true))
		}
	}
	return nil
}

// tidy removes what killed processes and a lost state folder have left.
func (w *Worker) tidy(ctx context.Context, claims map[string]worktree.ClaimState) error {
	return w.runner.Spaces().Tidy(ctx, func(ctx context.Context, key string) (bool, error) {
		c := claims[key]
		open, err := w.c.Run.Store.Find(ctx, journal.Query{Key: key, Open: true})
		return c.Err != nil || tally.Held(c) || slices.ContainsFunc(open, func(r journal.Record) bool { return r.Key == key && !w.runner.Dead(r) }), err
	}, func(key, text string) { w.emit(journal.Event{Kind: journal.EventWarning, Key: key, Text: text}) })
}

// recordLife is how long the record of an issue's runs stays on its claim. By then every clone's backlog shows the outcome.
const (
	recordLife      = 30 * 24 * time.Hour
	forgottenAtOnce = 20 // records that one sweep removes
)

// releaseStray releases the claim of a dead holder; forget removes its record, too. id is the run that the claim waits for, or
// empty.
func (w *Worker) releaseStray(ctx context.Context, key, id string, forget bool) error {
	rec := w.newRecord(tracker.Issue{Key: key})
	rec.ID = cmp.Or(id, rec.ID)
	claim, err := w.claim(ctx, rec)
	if err == nil && id != "" {
		err = w.end(ctx, claim, id)
	}
	if err == nil {
		after, cancel := workspace.Outlasting(ctx)
		defer cancel()
		if forget {
			err = claim.End(ctx, worktree.ClaimRecord{})
		} else {
			_, err = w.onBehalf(ctx, key, claim)
		}
		err = errors.Join(err, claim.Release(after)) // does nothing after Finish or End
	}
	if errors.Is(err, worktree.ErrTaken) || publish.Unreachable(err) {
		return nil
	}
	return err
}
