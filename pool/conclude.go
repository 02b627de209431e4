package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// concludeTime bounds everything that comes after the agent when the run is being stopped.
const concludeTime = 2 * time.Minute

// conclude publishes, reports, labels and releases, from the step the run stands at: a run that is taken up after a
// crash continues where it was. Outward effects are only made while the claim is held.
func (w *worker) conclude(ctx context.Context, s *session) {
	v := &w.rec.Verdict
	if ctx.Err() == nil && (v.Outcome == Succeeded || v.Outcome == GateFailed) {
		switch {
		case w.outward() && !w.fence(ctx) || !w.stillWanted(ctx):
			w.interrupted()
		default:
			if err := w.step(ctx, StepPublish); err != nil {
				w.warn(err)
			}
			w.publish(ctx, s)
		}
	}
	if ctx.Err() != nil { // killed, or the claim is lost: bring the work home, and no more
		if v.Published == "" && (v.Outcome == Succeeded || v.Outcome == GateFailed) {
			w.interrupted()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), concludeTime)
		defer cancel()
	}
	v.Warnings = append(v.Warnings, s.close(ctx)...)
	if s != nil && s.work.Tip != "" {
		v.Tip, v.Commits, v.WIP = s.work.Tip, len(s.work.Commits), s.work.WIP
	}
	if err := w.decide(ctx); err != nil {
		w.warn(err)
	}
	w.tell(ctx)
}

// tell is the part of the conclusion that needs no worktree.
func (w *worker) tell(ctx context.Context) {
	for _, s := range []struct {
		step Step
		do   func(context.Context) error
	}{{StepReport, w.report}, {StepLabel, w.label}, {StepRelease, w.release}} {
		if !w.owned() || w.expired() && !w.fence(ctx) {
			w.stop.stop(errClaimLost)
			break
		}
		if err := w.step(ctx, s.step); err != nil {
			w.warn(err)
		}
		err := s.do(ctx)
		if isAway(err) {
			w.orphan(ctx, err)
			return
		}
		if err != nil {
			w.warn(err)
			if s.step == StepReport {
				w.rec.Verdict.Unreported = err.Error()
			}
		}
	}
	w.rec.Ended = time.Now()
	if err := w.step(ctx, StepEnd); err != nil {
		w.warn(err)
	}
	w.emit(Event{
		Kind: EventEnded, Outcome: w.rec.Verdict.Outcome, Text: w.rec.Verdict.Reason, Branch: w.rec.Branch,
		Commits: w.rec.Verdict.Commits, Elapsed: w.rec.Ended.Sub(w.rec.Started).Seconds(),
	})
	if w.files != nil {
		w.files.close()
		if err := prune(filepath.Dir(w.rec.Dir), w.p.cfg.KeepRuns); err != nil {
			w.log.Warn().Err(err).Msg("old runs not pruned")
		}
	}
}

// owned reports that the claim, as far as we know, is ours.
func (w *worker) owned() bool { return !errors.Is(w.stop.cause(), errClaimLost) }

// orphan leaves the rest of the conclusion to the next sweep: the tracker or the remote is away.
func (w *worker) orphan(ctx context.Context, err error) {
	w.warn(fmt.Errorf("step %s is left to the next sweep: %w", w.rec.Step, err))
	w.rec.PID = 0
	if err := w.p.cfg.Journal.save(ctx, &w.rec); err != nil {
		w.log.Error().Err(err).Msg("journal not written")
	}
	if w.files != nil {
		w.files.close()
	}
}

// warn tells people on the run's record and in its events.
func (w *worker) warn(err error) {
	w.rec.Verdict.Warnings = append(w.rec.Verdict.Warnings, err.Error())
	w.emit(Event{Kind: EventWarning, Text: err.Error()})
}

// label shows the state to people. The first required label is the pick-up label: it goes when the work is done.
func (w *worker) label(ctx context.Context) error {
	v, l := w.rec.Verdict, w.p.cfg.Labels
	var c tracker.Change
	switch {
	case v.Outcome == Succeeded:
		c.RemoveLabels = []string{w.p.cfg.Require[0], l.NeedsHuman, l.NeedsInfo}
		if w.closed = w.p.cfg.Publish == PublishMerge; w.closed {
			c.Close = true
		} else {
			c.AddLabels = []string{l.InReview}
		}
	case v.Outcome == Superseded: // its labels are a person's doing
	case v.Outcome == NeedsInfo:
		c = tracker.Change{AddLabels: []string{l.NeedsInfo}, RemoveLabels: []string{l.NeedsHuman}}
	case v.Final:
		c = tracker.Change{AddLabels: []string{l.NeedsHuman}, RemoveLabels: []string{l.NeedsInfo}}
	case w.died && !v.Counted: // it has done nothing that an issue has to show
	default:
		c.RemoveLabels = []string{l.NeedsHuman, l.NeedsInfo}
		if v.Outcome.usesAttempt() && l.Failed != "" {
			c.AddLabels = []string{l.Failed}
		}
	}
	for _, own := range []string{l.Claimed, l.Failed} {
		if own != "" && !slices.Contains(c.AddLabels, own) {
			c.RemoveLabels = append(c.RemoveLabels, own)
		}
	}
	err := w.p.cfg.Tracker.Change(ctx, w.rec.Key, c)
	if err != nil && !isAway(err) {
		w.rec.Verdict.Unlabelled = err.Error()
	}
	return err
}

// release gives the claim up. What is finished leaves a record in its place, so that another clone of the repository,
// whose backlog does not show it yet, does not work the issue again.
func (w *worker) release(ctx context.Context) error {
	v := w.rec.Verdict
	switch {
	case w.borrowed:
		return nil
	case !v.Final:
		return w.claim.Release(ctx)
	}
	return w.claim.Finish(ctx, worktree.Done{
		Run: w.rec.Run, Host: w.rec.Host, Outcome: string(v.Outcome), Hash: w.rec.Hash, Tip: v.Tip, At: time.Now(),
	})
}
