package pool

import (
	"context"
	"errors"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Recovered is the result of Recover.
type Recovered struct {
	Finished    []journal.Record  // runs that had only their last stages left and have ended now
	Interrupted []journal.Record  // runs that were cut off and have ended as interrupted; the next sweep continues their work
	Broken      []backlog.Skipped // runs that could not be recovered now
	Unavailable error             // why a run could not be claimed, published or reported, if other runs would fail for the same reason
}

// Recover continues every run of this host whose process has died: it kills processes that still run, imports the commits, does
// the remaining stages, and releases the claim. It does not touch runs of live processes. A run that cannot be recovered does not
// stop the others. When ctx ends, Recover leaves the rest to the next call.
func (w *Worker) Recover(ctx context.Context) (Recovered, error) {
	if w.lifetime.Err() != nil {
		return Recovered{}, ErrEnded
	}
	s, done := w.beginCall(ctx, nil)
	defer done()
	return w.recover(s, "")
}

// recover is Recover; with a key it recovers only that issue. Once s.early has ended it begins with no other run.
func (w *Worker) recover(s callContexts, key string) (r Recovered, err error) {
	open, err := w.c.Run.Store.Find(s.hard, journal.Query{Pool: w.c.Run.Pool, Key: key, Kind: journal.KindIssue, Open: true})
	if err != nil {
		return r, err
	}
	broken := func(key string, err error) {
		if err == nil || s.early.Err() != nil { // after the end of early every call may fail
			return
		}
		why := brokenSkip("recover: " + err.Error())
		r.Broken = append(r.Broken, backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: why})
		w.emit(journal.Event{Kind: journal.EventProblem, Key: key, Skip: &why})
	}
	for _, rec := range open {
		if s.early.Err() != nil {
			return r, nil //nolint:nilerr // the rest is left to the next call
		}
		if !w.runner.Dead(rec) && (rec.Host == w.runner.Host() || !w.claimIsFree(s.early, rec)) {
			continue
		}
		err := w.recoverRun(s, rec, &r)
		if publish.Unreachable(err) {
			r.Unavailable = err
		}
		broken(rec.Key, err)
	}
	if key != "" || s.early.Err() != nil {
		return r, nil //nolint:nilerr // as above
	}
	err = w.taker.RemoveStrays(s.early, s.hard, open, broken)
	if s.early.Err() != nil {
		return r, nil //nolint:nilerr // as above
	}
	return r, err
}

// claimIsFree reports whether the claim of another host's run is free. The journal is on this machine, so the host name has
// changed.
func (w *Worker) claimIsFree(ctx context.Context, r journal.Record) bool {
	held, err := w.taker.Claims(ctx)
	c, ok := held[r.Key]
	return err == nil && c.Err == nil && (!ok || c.Gone || c.Holder.Run != r.ID)
}

// recoverRun claims the issue of a dead run and settles the run.
func (w *Worker) recoverRun(s callContexts, rec journal.Record, r *Recovered) error {
	claim, err := w.taker.Take(s.early, rec)
	taken, isTaken := errors.AsType[*worktree.TakenError](err)
	switch {
	case isTaken:
		if taken.Holder.Run == "" {
			return nil // the claim is being released
		}
		if known, err := w.taker.Find(s.hard, taken.Holder.Run); known != nil || err != nil {
			return err // another process with this journal holds the claim, and settles the run itself
		}
	case err != nil && s.early.Err() != nil:
		return nil // left to the next call
	case errors.Is(err, worktree.ErrRemote):
		w.emit(journal.Event{Kind: journal.EventWarning, Run: rec.ID, Key: rec.Key, Text: "not recovered yet: " + err.Error()})
		r.Unavailable = err
		return nil
	case err != nil:
		return err
	}
	after, cancel := halt.ForRelease(s.hard, s.early)
	defer cancel()
	now, err := w.taker.Find(s.hard, rec.ID)
	if err != nil {
		return errors.Join(err, w.leaveClaim(after, claim, rec))
	}
	if now == nil || !now.Ended.IsZero() || !w.runner.Dead(*now) && now.Host == w.runner.Host() { // another process was faster
		if claim == nil {
			return nil
		}
		return claim.Release(after)
	}
	_, err = w.settle(s, *now, claim, false, r)
	return err
}

// leaveClaim keeps the claim of a dead run for the next try to recover it.
func (w *Worker) leaveClaim(ctx context.Context, claim *worktree.Claim, rec journal.Record) error {
	if claim == nil {
		return nil
	}
	return claim.Reserve(ctx, rec.ID, w.runner.ReservedFor(rec.Stage))
}

// settleEarlier settles the issue's dead runs under the attempt's claim. over reports that the issue needs no new run now.
func (a *attempt) settleEarlier() (over bool, err error) {
	w, s := a.w, a.call
	s.soft = a.handle.soft // Stop ends this, too
	runs, err := w.history(s.hard, a.rec.Key)
	if err != nil {
		return false, err
	}
	var settled Recovered
	for _, rec := range runs {
		if rec.ID == a.rec.ID || !rec.Ended.IsZero() || !w.runner.Dead(rec) {
			continue
		}
		over, err = w.settle(s, rec, a.claim, true, &settled)
		if a.finished = settled.Finished; over || err != nil {
			return over, err
		}
	}
	return w.taker.FinishReport(s.hard, a.rec.Key, a.claim)
}

// settle ends one dead run. A run that had finished its work continues at its stage; any other ends as interrupted. shared means
// that another run uses the claim afterwards. over reports that the issue needs no new run now.
func (w *Worker) settle(s callContexts, rec journal.Record, claim *worktree.Claim, shared bool, r *Recovered) (over bool, err error) {
	after, cancel := halt.ForRelease(s.hard, s.soft)
	defer cancel()
	d := &deadRun{w: w, call: s, releaseCtx: after, rec: rec, claim: claim, shared: shared}
	for _, step := range []func() error{d.endProcesses, d.leaveToOthers, d.addCounts, d.readIssue} {
		if err := step(); err != nil {
			return false, err
		}
	}
	if rec.Stage == journal.StageClaim && !d.mayHaveLabelled() {
		return false, d.forget()
	}
	return d.resume(r)
}

// deadRun is a run whose process has died, while settle ends it.
type deadRun struct {
	w          *Worker
	call       callContexts
	releaseCtx context.Context // for releasing the claim
	rec        journal.Record
	claim      *worktree.Claim // nil: another machine has the issue, and this run reports nothing
	shared     bool            // another run uses the claim afterwards
	issue      tracker.Issue
}

// endProcesses ends the processes that the run has left behind.
func (d *deadRun) endProcesses() error {
	if err := d.w.runner.Spaces().End(d.call.hard, d.rec.ID); err != nil {
		return d.keepClaim(&issueError{err})
	}
	return nil
}

// leaveToOthers releases the claim if another machine has worked the issue since.
func (d *deadRun) leaveToOthers() error {
	reported, overtaken := tally.Overtaken(d.rec, d.claim)
	if !overtaken || d.hasFinished() {
		return nil
	}
	d.rec.Facts.Reported = reported
	if !d.shared {
		if err := d.claim.Release(d.releaseCtx); err != nil {
			return err
		}
	}
	d.claim = nil
	return nil
}

// hasFinished reports whether the run has finished its claim and may still have to report, and nobody has asked for another run since.
func (d *deadRun) hasFinished() bool {
	last := d.claim.Record()
	return d.w.c.Run.ReportsHere() && last.Run == d.rec.ID && last.Finished && last.Asked == nil && !d.rec.Stage.Before(journal.StagePublish)
}

// addCounts puts the counts of the issue's earlier runs into the record.
func (d *deadRun) addCounts() error {
	if d.rec.Stage == journal.StageClaim { // the dead run had not counted them yet
		if _, err := d.w.countRuns(d.call.hard, &d.rec, d.claim.Record()); err != nil {
			return d.keepClaim(err)
		}
	}
	if d.claim != nil {
		d.rec.Earlier = tally.BeforeDeadRun(d.rec, d.claim.Record())
	}
	d.rec.Elsewhere = d.claim == nil && d.rec.Stage.Before(journal.StageRelease)
	return nil
}

// readIssue reads the issue. If the tracker cannot be reached, the next sweep settles the run.
func (d *deadRun) readIssue() (err error) {
	d.issue, err = d.w.c.Run.Tracker.Get(d.call.soft, d.rec.Key)
	if publish.Unreachable(err) || err != nil && d.call.soft.Err() != nil {
		d.rec.PID = 0
		return errors.Join(err, d.w.leaveClaim(d.releaseCtx, d.claim, d.rec), d.w.c.Run.Store.Save(d.releaseCtx, d.rec))
	}
	if err != nil {
		d.issue = tracker.Issue{Key: d.rec.Key, Title: d.rec.Title, URL: d.rec.URL}
	}
	return nil
}

// mayHaveLabelled reports whether the run may have set the label Claimed, which its end has to remove.
func (d *deadRun) mayHaveLabelled() bool {
	label := d.w.c.Run.Labels.Claimed
	return d.claim != nil && label != "" && d.issue.HasLabel(label)
}

// forget deletes the record of a run that has done nothing: perhaps it never had the claim, so it must not count as the issue's last.
func (d *deadRun) forget() error {
	err := d.w.c.Run.Store.Forget(d.releaseCtx, d.rec.ID)
	if d.claim != nil && !d.shared {
		err = errors.Join(err, d.claim.Release(d.releaseCtx))
	}
	return err
}

// resume does the run's remaining stages.
func (d *deadRun) resume(r *Recovered) (over bool, err error) {
	w, rec := d.w, d.rec
	how := "ralph died at stage "
	if rec.PID == 0 {
		how = "was left at stage "
	}
	finished := !rec.Stage.Before(journal.StageVerify) && rec.Facts.StoppedStage == ""
	h := w.register(d.call, rec)
	defer w.unregister(h)
	res := w.runner.Do(d.call.hard, &run.Task{
		LastRuns: d.call.early, StopContext: h.soft, KillContext: h.urgent,
		Record: rec, Resume: true, Claim: d.claim, Shared: d.shared && !finished, Issue: d.issue,
		Unfit: decide.StillFit(w.c.Run.Labels, w.c.Exclude, rec), Edited: rec.Differs,
	})
	w.emit(journal.Event{Kind: journal.EventRecovered, Run: rec.ID, Key: rec.Key, Title: rec.Title, Text: how + string(rec.Stage)})
	v := res.Record.Verdict
	asked := h.soft.Err() != nil && d.call.soft.Err() == nil
	over = finished || v.Final || asked // after a stop, a new run would continue the work that was to end
	switch {
	case res.Deferred != nil:
	case !over || !v.Final && v.Outcome == journal.Interrupted:
		r.Interrupted = append(r.Interrupted, res.Record)
	default:
		r.Finished = append(r.Finished, res.Record)
	}
	return over, res.Deferred
}

// keepClaim keeps the claim for the next try to settle the run, and returns the reason why this one failed.
func (d *deadRun) keepClaim(why error) error {
	if d.shared {
		return why
	}
	return errors.Join(why, d.w.leaveClaim(d.releaseCtx, d.claim, d.rec))
}
