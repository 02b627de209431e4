package pool

import (
	"context"
	"errors"
	"strings"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
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
	s, done := w.call(ctx, nil)
	defer done()
	return w.recover(s, "")
}

// recover is Recover, for one issue if there is a key. After the end of s.early it begins with no other run.
func (w *Worker) recover(s stops, key string) (r Recovered, err error) {
	open, err := w.c.Run.Store.Find(s.hard, journal.Query{Pool: w.c.Run.Name, Key: key, Kind: journal.KindIssue, Open: true})
	if err != nil {
		return r, err
	}
	broken := func(key string, err error) {
		if err == nil || s.early.Err() != nil { // then every call may fail
			return
		}
		why := journal.Skip{Code: journal.SkipBroken, Detail: "recover: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
		r.Broken = append(r.Broken, backlog.Skipped{Issue: tracker.Issue{Key: key}, Skip: why})
		w.emit(journal.Event{Kind: journal.EventProblem, Key: key, Skip: &why})
	}
	for _, rec := range open {
		if s.early.Err() != nil {
			return r, nil //nolint:nilerr // the rest is left to the next call
		}
		if !w.runner.Dead(rec) && (rec.Host == w.runner.Host() || !w.abandoned(s.early, rec)) {
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

// abandoned reports that the claim of another host's run is free. The journal is on this machine, so its host name has changed.
func (w *Worker) abandoned(ctx context.Context, r journal.Record) bool {
	held, err := w.taker.Claims(ctx)
	c, ok := held[r.Key]
	return err == nil && c.Err == nil && (!ok || c.Gone || c.Holder.Run != r.ID)
}

// recoverRun claims the issue of a dead run and settles the run.
func (w *Worker) recoverRun(s stops, rec journal.Record, r *Recovered) error {
	claim, err := w.taker.Take(s.early, rec)
	taken, isTaken := errors.AsType[*worktree.TakenError](err)
	switch {
	case isTaken:
		if taken.Holder.Run == "" {
			return nil // it is being released
		}
		if known, err := w.taker.Find(s.hard, taken.Holder.Run); known != nil || err != nil {
			return err // another process with this journal holds the claim, and settles the run itself
		}
	case err != nil && s.early.Err() != nil:
		return nil // it is left to the next call
	case errors.Is(err, worktree.ErrRemote):
		w.emit(journal.Event{Kind: journal.EventWarning, Run: rec.ID, Key: rec.Key, Text: "not recovered yet: " + err.Error()})
		r.Unavailable = err
		return nil
	case err != nil:
		return err
	}
	after, cancel := workspace.Leaving(s.early, s.hard)
	defer cancel()
	now, err := w.taker.Find(s.hard, rec.ID)
	if err != nil {
		return errors.Join(err, w.leave(after, claim, rec))
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

// leave keeps the claim of a dead run for the next try to recover it.
func (w *Worker) leave(ctx context.Context, claim *worktree.Claim, rec journal.Record) error {
	if claim == nil {
		return nil
	}
	return claim.Leave(ctx, rec.ID, w.runner.LeftFor(rec.Stage))
}

// settleEarlier settles the issue's dead runs under the attempt's claim. over reports that the issue needs no new run now.
func (a *attempt) settleEarlier() (over bool, err error) {
	w, s := a.w, a.call
	s.soft = a.on.soft // Stop reaches it
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
	return w.taker.OnBehalf(s.hard, a.rec.Key, a.claim)
}

// settle ends one dead run. A run that had finished its work continues at its stage; any other ends as interrupted. Without a
// claim another process has the issue, and nothing is reported. shared means that another run uses the claim afterwards. over
// reports that the issue needs no new run now.
func (w *Worker) settle(s stops, rec journal.Record, claim *worktree.Claim, shared bool, r *Recovered) (over bool, err error) {
	after, cancel := workspace.Leaving(s.soft, s.hard)
	defer cancel()
	giveUp := func(err error) (bool, error) {
		if !shared {
			err = errors.Join(err, w.leave(after, claim, rec))
		}
		return false, err
	}
	if err := w.runner.Spaces().End(s.hard, rec.ID); err != nil {
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
		if _, err := w.count(s.hard, &rec, claim.Record()); err != nil {
			return giveUp(err)
		}
	}
	if claim != nil {
		rec.Earlier = tally.Onto(rec, claim.Record())
	}
	rec.Elsewhere = claim == nil && rec.Stage.Before(journal.StageRelease)
	issue, err := w.c.Run.Tracker.Get(s.soft, rec.Key)
	if publish.Unreachable(err) || err != nil && s.soft.Err() != nil { // try again later
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
	finished := !rec.Stage.Before(journal.StageVerify) && rec.Facts.Cut == ""
	on := w.register(s.soft, rec)
	defer w.forget(on)
	res := w.runner.Do(s.hard, run.Task{
		Soft: on.soft, Urgent: on.urgent,
		Record: rec, Resume: true, Claim: claim, Shared: shared && !finished, Issue: issue, Unfit: decide.StillFit(w.c.Run.Labels, w.c.Exclude, rec), Edited: rec.Differs,
	})
	w.emit(journal.Event{Kind: journal.EventRecovered, Run: rec.ID, Key: rec.Key, Title: rec.Title, Text: how + string(rec.Stage)})
	v := res.Record.Verdict
	asked := on.soft.Err() != nil && s.soft.Err() == nil
	over = finished || v.Final || asked // the next run would be what was to end
	switch {
	case res.Deferred != nil:
	case !over || !v.Final && v.Outcome == journal.Interrupted:
		r.Interrupted = append(r.Interrupted, res.Record)
	default:
		r.Finished = append(r.Finished, res.Record)
	}
	return over, res.Deferred
}
