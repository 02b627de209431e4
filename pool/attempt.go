package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/internal/admission"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/internal/tally"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// attempt takes one issue from the claim to the end of its run. It belongs to one goroutine.
type attempt struct {
	task
	w             *Worker
	rec           journal.Record
	claim         *worktree.Claim
	feedback      string
	unpublished   *journal.Record // an earlier run whose commits are not published yet
	stored        *journal.Record // the record that was stored before the batch moves the base
	mergedByBatch bool            // the batch has merged the commits; only the later stages are left
	labelled      bool            // the tracker was asked to set the label Claimed
	startErr      error           // why the run cannot begin; nil if it can
	finished      []journal.Record
	call          callContexts
	handle        *runHandle // the registration through which Stop reaches the attempt
	stopWaiting   func()     // ends the wait for a request to stop
}

// issueError is a failure before the run that affects this issue only. It ends the run, which does not count as an attempt.
type issueError struct{ error }

// Unwrap returns the cause.
func (e *issueError) Unwrap() error { return e.error }

// newAttempt claims the issue and freezes it. If the attempt is nil, the result has the reason. It registers the attempt first,
// so that Stop reaches it as soon as the journal shows its record.
func (w *Worker) newAttempt(s callContexts, t task) (*attempt, *Result) {
	a := &attempt{task: t, w: w, call: s, rec: w.newRecord(t.issue)}
	a.rec.Base = t.base.Name
	if s.early.Err() != nil {
		return nil, a.skipResult(journal.Skip{Code: journal.SkipStopped})
	}
	if f := t.follow; f != nil {
		a.rec.FollowUp, a.rec.AnswersUntil, a.rec.Threads = string(f.Reason), f.At, f.Threads
		a.rec.Request = journal.Request{Number: f.Request.Number, URL: f.Request.URL, Draft: f.Request.Draft}
	}
	if t.merge {
		s := &a.rec.Settings
		s.Publish, s.Attended, s.Checks.Files, s.Checks.Clean, s.Limits.MaxAttempts = journal.PublishMerge, true, journal.GateFilesReport, true, 1
		a.rec.Agent, a.rec.Model = "", ""
	}
	a.handle = w.register(s, a.rec)
	a.call, a.stopWaiting = callContexts{a.handle.early, s.soft, s.hard}, a.handle.awaitStopRequest(a.rec.Dir)
	if result := a.claimAndFreeze(); result != nil {
		a.unlabelStopped(result)
		a.unregister()
		return nil, result
	}
	return a, nil
}

// claimAndFreeze takes the claim and the snapshot. If it fails, it returns a result with the reason.
func (a *attempt) claimAndFreeze() *Result {
	err := a.w.runner.Admit(a.call.hard, &a.rec)
	if err != nil {
		return a.endUnclaimed(err, true)
	}
	if a.claim, err = a.w.taker.Take(a.call.early, a.rec); err != nil {
		return a.endUnclaimed(err, false)
	}
	change, cancel := halt.Within(a.call.hard, halt.RemoteGrace(a.handle.soft, 0), halt.RemoteGrace(a.call.early, 0)) // no change is left half done
	defer cancel()
	skip, err := a.freeze(change)
	if err != nil && (a.handle.soft.Err() != nil || a.call.early.Err() != nil) {
		skip, err = a.stopSkip(), nil
	}
	own, ok := errors.AsType[*issueError](err)
	if ok && a.call.hard.Err() == nil && !publish.Unreachable(err) {
		a.startErr, skip, err = own.error, nil, nil
	}
	if skip != nil || err != nil {
		return a.endClaimed(skip, err)
	}
	return nil
}

// do does the run of the attempt.
func (a *attempt) do() *Result {
	w, rec := a.w, &a.rec
	a.stopWaiting()
	defer w.unregister(a.handle)
	if a.mergedByBatch {
		rec = a.stored
	}
	res := w.runner.Do(a.call.hard, &run.Task{
		LastRuns: a.call.early, StopContext: a.handle.soft, KillContext: a.handle.urgent,
		Record: *rec, Claim: a.claim, Issue: a.issue, Follow: a.follow, Feedback: a.feedback, Unpublished: a.unpublished, Base: a.base,
		Failed: a.startErr, Unfit: decide.StillFit(w.c.Run.Labels, w.c.Exclude, a.rec), Edited: a.rec.Differs, Resume: a.mergedByBatch,
	})
	return &Result{Issue: a.issue, Record: res.Record, Closed: res.Closed, Unavailable: res.Unavailable, Deferred: res.Deferred, Finished: a.finished}
}

// freeze settles the issue's dead runs and takes the snapshot for this run. A skip means that the issue no longer qualifies.
// change is the context of changes to the tracker and the claim.
func (a *attempt) freeze(change context.Context) (*journal.Skip, error) {
	w := a.w
	over, unsettled := a.settleEarlier()
	runs, err := w.countRuns(a.call.hard, &a.rec, a.claim.Record())
	if over || unsettled != nil || err != nil {
		return &journal.Skip{Code: journal.SkipRecovered}, errors.Join(unsettled, err)
	}
	last, ended := runs.Last()
	begun := runs.Begun()
	if d := a.claim.Record(); d.Pending != nil {
		return &journal.Skip{Code: journal.SkipUnreported, Run: d.Run}, nil
	}
	issue, err := w.c.Run.Tracker.Get(a.call.early, a.rec.Key)
	if errors.Is(err, tracker.ErrNotFound) {
		return &journal.Skip{Code: journal.SkipGone}, nil
	}
	if err != nil {
		return nil, &issueError{err}
	}
	if ended && last.Verdict.Final && a.follow == nil {
		a.rec.After, a.rec.AfterOutcome = last.ID, last.Verdict.Outcome
	}
	if (a.rec.Settings.Attended || a.follow != nil) && !issue.Open {
		return &journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitClosed}}, nil
	}
	if a.rec.Settings.Attended {
		before, _ := begun.Last()
		if !before.SaidDone() { // its last words are no summary
			before.Facts.Message = ""
		}
		before.Facts.End = loop.EndDone
		a.unpublished = &before
		return nil, a.snapshot(change, issue, nil, "")
	}
	past := backlog.EarlierRuns{Tally: a.rec.Earlier, Last: last, Finished: a.claim.Record(), Approved: tally.Approved(issue, runs, a.claim)}
	if skip, err := a.checkFit(change, issue, past); skip != nil || err != nil {
		return skip, err
	}
	text, err := a.feedbackOnEarlierRuns(begun)
	if err != nil {
		return nil, err
	}
	return nil, a.snapshot(change, issue, begun, text+feedback.Asked(a.rec.Earlier.Asked))
}

// feedbackOnEarlierRuns decides whether the run continues from the earlier commits, and returns what the prompt tells the agent
// about earlier runs.
func (a *attempt) feedbackOnEarlierRuns(begun journal.History) (text string, err error) {
	if a.follow != nil {
		return feedback.FollowUp(*a.follow, a.base.Name), nil
	}
	last, _ := begun.Last()
	if err := a.startAfreshIfRefused(a.call.early, last); err != nil {
		return "", err
	}
	if a.rec.ExcludedCommit != "" {
		return feedback.Restarted(last, a.rec.RestartReason), nil
	}
	return feedback.Earlier(begun), nil
}

// checkFit returns the reason why the issue, or the request to follow up, no longer qualifies; nil if it does.
func (a *attempt) checkFit(change context.Context, issue tracker.Issue, past backlog.EarlierRuns) (*journal.Skip, error) {
	w, early := a.w, a.call.early
	if a.follow != nil {
		return w.planner.Outdated(*a.follow, issue, past, a.keys), nil
	}
	if skip, err := w.planner.WhyNot(early, issue, past, a.keys); skip != nil || err != nil {
		return skip, err
	}
	skip, err := w.planner.Unapproved(early, issue, past)
	if skip != nil && skip.Code == journal.SkipEdited {
		err = a.unlabelEdited(change)
	}
	return skip, err
}

// unlabelEdited removes the pick-up label that a command has set. The text has changed since, so a person has to approve it.
func (a *attempt) unlabelEdited(ctx context.Context) error {
	if err := a.w.c.Run.Tracker.Change(ctx, a.rec.Key, tracker.Change{RemoveLabels: a.w.c.Require[:1]}); err != nil {
		return err
	}
	t, asked := a.rec.Earlier, *a.rec.Earlier.Asked
	t.Asked, asked.Labelled = &asked, false
	return a.claim.SetRecord(ctx, tally.ToRecord(t))
}

// startAfreshIfRefused makes the run start from the base if people or the policy have refused the earlier commits.
func (a *attempt) startAfreshIfRefused(ctx context.Context, last journal.Record) error {
	w := a.w
	if last.Verdict.Outcome == journal.PolicyBlocked {
		a.rec.ExcludedCommit, a.rec.RestartReason = last.Tip, "the policy refuses the commits of run "+last.ID
	}
	if asked := a.rec.Earlier.Asked; asked != nil && asked.Fresh && tally.AsksForNewWork(asked, a.claim.Record()) {
		a.rec.Fresh, a.rec.ExcludedCommit = true, a.rec.Earlier.Tip
		if a.rec.ExcludedCommit != "" {
			a.rec.RestartReason = asked.By + " asked for that"
		}
		return nil
	}
	if w.c.Run.Publish != journal.PublishRequest {
		return nil
	}
	commit, url, err := w.RejectedHead(ctx, a.rec.Branch, a.base.Name)
	if err != nil {
		return &issueError{fmt.Errorf("look for a closed request: %w", err)}
	}
	if commit != "" {
		a.rec.ExcludedCommit, a.rec.RestartReason = commit, url+" was closed without a merge"
	}
	return nil
}

// countRuns reads the issue's runs and puts their counts into the record of the next run. known is the record in the claim.
func (w *Worker) countRuns(ctx context.Context, rec *journal.Record, known worktree.ClaimRecord) (journal.History, error) {
	runs, err := w.history(ctx, rec.Key)
	last, _ := runs.Last()
	rec.Earlier, rec.FormerBase = tally.Newest(last, known), cmp.Or(last.BuiltOn, last.FormerBase)
	next := journal.Record{Run: rec.Run}.Tally() // resets the counts after a final run
	rec.Attempt, rec.Facts.Failures = next.Attempts+1, next.Failures
	if rec.Agent != "" {
		w.runner.Lot().Assign(w.c.Run.Chain(rec.Attempt), &rec.Run, time.Now())
	}
	return runs, err
}

// snapshot stores the present issue in the run's record and sets the label Claimed.
func (a *attempt) snapshot(ctx context.Context, issue tracker.Issue, runs journal.History, feedback string) error {
	a.issue, a.feedback = issue, feedback
	a.rec.Title, a.rec.URL, a.rec.Hash = issue.Title, issue.URL, issue.Hash()
	if a.unpublished == nil && !tally.AsksForNewWork(a.rec.Earlier.Asked, a.claim.Record()) {
		a.unpublished = tally.Unpublished(runs, a.claim.Record(), a.rec.Hash, a.rec.AnswersUntil)
	}
	if known := a.claim.Record(); known.Stopped { // somebody has requested the issue again
		known.Stopped, a.rec.Earlier.Stopped = false, false
		if err := a.claim.SetRecord(ctx, known); err != nil {
			return err
		}
	}
	a.rec.HandedOver = issue.HasLabel(a.w.c.Run.Labels.NeedsHuman)
	if label := a.w.c.Run.Labels.Claimed; label != "" {
		a.labelled = true
		if err := a.w.c.Run.Tracker.Change(ctx, a.rec.Key, tracker.Change{AddLabels: []string{label}}); err != nil {
			return &issueError{err}
		}
	}
	return nil
}

// endUnclaimed ends an attempt that was not admitted or got no claim. affectsAll means that every issue would fail for the same
// reason.
func (a *attempt) endUnclaimed(err error, affectsAll bool) *Result {
	if capped := admission.Skip(err); capped != nil {
		return a.skipResult(*capped)
	}
	after, cancel := halt.ForRelease(a.call.hard)
	defer cancel()
	forgotten := a.w.c.Run.Store.Forget(after, a.rec.ID)
	taken, ok := errors.AsType[*worktree.TakenError](err)
	switch {
	case ok && forgotten == nil:
		return a.skipResult(journal.Skip{Code: journal.SkipClaimed, Run: taken.Holder.Run, Host: taken.Holder.Host})
	case a.call.early.Err() != nil && forgotten == nil:
		return a.skipResult(*a.stopSkip())
	}
	r := a.faultResult(errors.Join(err, forgotten))
	if affectsAll || disk.Unwritable(err) {
		r.Unavailable = err
	}
	return r
}

// endClaimed ends an attempt that has a claim but starts no run. The caller unregisters it.
func (a *attempt) endClaimed(skip *journal.Skip, err error) *Result {
	after, cancel := halt.ForRelease(a.call.hard, a.handle.soft, a.call.early)
	defer cancel()
	err = errors.Join(err, a.claim.Release(after))
	if a.labelled { // perhaps the label is set: the next sweep recovers the record as a dead run's, and removes the label
		a.rec.PID = 0
		err = errors.Join(err, a.w.c.Run.Store.Save(after, a.rec))
	} else {
		err = errors.Join(err, a.w.c.Run.Store.Forget(after, a.rec.ID))
	}
	if err != nil {
		return a.faultResult(err)
	}
	return a.skipResult(*skip)
}

// stopSkip returns the skip for a stop of this attempt alone, or of the whole call.
func (a *attempt) stopSkip() *journal.Skip {
	if a.handle.soft.Err() != nil && a.call.soft.Err() == nil {
		return &journal.Skip{Code: journal.SkipAsked}
	}
	return &journal.Skip{Code: journal.SkipStopped}
}

// unlabelStopped removes the pick-up label if StopUnlabels is set and a person's stop has ended the attempt. A run would do the
// same.
func (a *attempt) unlabelStopped(result *Result) {
	var why journal.Facts
	halt.Note(&why, context.Cause(a.handle.soft))
	ended := why.Stop == journal.StopAsked && (result.Skip.Code == journal.SkipAsked || result.Err != nil)
	if !ended || !a.w.c.Run.StopUnlabels || a.follow != nil || len(a.w.c.Require) == 0 {
		return
	}
	after, cancel := halt.ForRelease(a.call.hard, a.handle.soft)
	defer cancel()
	if err := a.w.c.Run.Tracker.Change(after, a.rec.Key, tracker.Change{RemoveLabels: a.w.c.Require[:1]}); err != nil {
		text := fmt.Sprintf("the issue was stopped, but its label %s is still there; remove it: %v", a.w.c.Require[0], err)
		a.w.emit(journal.Event{Kind: journal.EventWarning, Key: a.rec.Key, Run: a.rec.ID, Text: text})
	}
}

// unregister removes the registration of an attempt that starts no run.
func (a *attempt) unregister() {
	a.stopWaiting()
	if err := journal.StopObeyed(a.rec); err != nil {
		a.w.c.Run.Log.Warn("request to stop not removed", "error", err)
	}
	a.w.unregister(a.handle)
}

// brokenSkip returns why an issue is in Summary.Broken, in one line.
func brokenSkip(why string) journal.Skip {
	return journal.Skip{Code: journal.SkipBroken, Detail: strings.ReplaceAll(why, "\n", "; ")}
}

// faultResult returns the result for a fault of this host or the repository.
func (a *attempt) faultResult(err error) *Result {
	r := a.skipResult(brokenSkip(err.Error()))
	r.Err = err
	if publish.Unreachable(err) {
		r.Unavailable = err
	}
	return r
}

func (a *attempt) skipResult(s journal.Skip) *Result {
	return &Result{Issue: a.issue, Record: a.rec, Skip: &s, Finished: a.finished}
}
