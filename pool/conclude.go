package pool

import (
	"cmp"
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

// maxTries is how often what may be a passing fault is met, in as many sweeps, before a person has to look.
const maxTries = 3

// conclude publishes, reports, labels and releases, from the step the run stands at: a run that is taken up after a
// crash, or after a fault, continues where it was. Outward effects are only made while the claim is held.
func (w *worker) conclude(ctx context.Context, s *session) {
	v := &w.rec.Verdict
	if ctx.Err() == nil && (v.Outcome == Succeeded || v.Outcome == GateFailed) {
		switch {
		case w.outward() && !w.fence(ctx) || !w.stillWanted(ctx):
			w.interrupted()
		default:
			terms := w.terms()
			v.Terms = &terms
			if err := w.step(ctx, StepPublish); err != nil {
				w.warn(err)
			}
			if err := w.publish(ctx, s); err != nil && w.later(ctx, s, err) {
				return
			} else if err != nil {
				v.Outcome, v.Counted, v.Reason = Failed, false, "publish: "+err.Error()
			}
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
		v.Tip, v.Commits, v.WIP = s.work.Tip, len(s.work.Commits), cmp.Or(s.saved, s.work.WIP)
	}
	if err := w.decide(ctx); err != nil {
		w.warn(err)
	}
	w.tell(ctx)
}

// tell is the part of the conclusion that needs no worktree. What was done before a crash or a fault is not done again.
func (w *worker) tell(ctx context.Context) {
	from := slices.Index(Steps(), w.rec.Step)
	for _, s := range []struct {
		step Step
		do   func(context.Context) error
	}{{StepReport, w.report}, {StepLabel, w.label}, {StepRelease, w.release}} {
		if slices.Index(Steps(), s.step) < from {
			continue
		}
		if !w.owned() || w.expired() && !w.fence(ctx) {
			w.stop.stop(errClaimLost)
			break
		}
		if err := w.step(ctx, s.step); err != nil {
			w.warn(err)
		}
		err := s.do(ctx)
		switch {
		case err == nil:
			w.rec.Verdict.Tries = 0
			continue
		case errors.Is(err, worktree.ErrLost):
			w.stop.stop(errClaimLost)
			continue
		case w.gone(ctx, err):
			continue
		case w.later(ctx, nil, err):
			return
		}
		w.warn(err)
		switch s.step {
		case StepReport:
			w.rec.Verdict.Unreported = err.Error()
		case StepLabel:
			w.rec.Verdict.Unlabelled = err.Error()
		}
		w.rec.Verdict.Tries = 0
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

// gone reports that there is no issue any more to tell the end to, which no later sweep could do either. What was published
// stays so; any other run is superseded by whoever has taken the issue away.
func (w *worker) gone(ctx context.Context, err error) bool {
	if !errors.Is(err, tracker.ErrNotFound) {
		return false
	}
	if _, now := w.p.cfg.Tracker.Get(ctx, w.rec.Key); !errors.Is(now, tracker.ErrNotFound) {
		return false // it is something of the issue that was not found
	}
	v := &w.rec.Verdict
	v.Tries = 0
	if v.Published == "" {
		if v.Outcome != Superseded && v.Reason != "" {
			v.Warnings = append(v.Warnings, fmt.Sprintf("it had been %s: %s", v.Outcome, v.Reason))
		}
		v.Outcome, v.Reason = Superseded, (&supersededError{"gone"}).Error()
		v.Counted, v.Final, v.RetryAt = false, false, time.Time{}
	}
	return true
}

// owned reports that the claim, as far as we know, is ours.
func (w *worker) owned() bool { return !errors.Is(w.stop.cause(), errClaimLost) }

// later leaves the rest of the conclusion to the next sweep: without the agent, and with the worktree as it is. A tracker
// that is away is waited for; of anything else that fails again and again it returns false.
func (w *worker) later(ctx context.Context, s *session, err error) bool {
	v := &w.rec.Verdict
	var away *tracker.UnavailableError
	switch {
	case errors.As(err, &away):
	case errors.Is(w.stop.cause(), errStopped): // it was cut short
	case v.Tries+1 < maxTries:
		v.Tries++
	default:
		v.Tries = maxTries
		return false
	}
	if isAway(err) {
		w.away = err
	}
	v.Warnings = append(v.Warnings, s.shut(ctx)...)
	w.left = fmt.Errorf("step %s is left to the next sweep: %w", w.rec.Step, err)
	w.warn(w.left)
	w.rec.PID = 0
	if err := w.p.cfg.Journal.save(context.WithoutCancel(ctx), &w.rec); err != nil {
		w.log.Error().Err(err).Msg("journal not written")
	}
	w.leaveClaim(ctx)
	if w.files != nil {
		w.files.close()
	}
	return true
}

// leftLife is how long an issue waits for a run whose commits are on this host only; other runs wait for ClaimLife.
const leftLife = 24 * time.Hour

// leaveClaim keeps others from the issue until the run is taken up again.
func (w *worker) leaveClaim(ctx context.Context) {
	if w.claim == nil || w.borrowed {
		return
	}
	life := w.p.cfg.ClaimLife
	if w.rec.Step == StepPublish {
		life = leftLife
	}
	if err := w.claim.Leave(context.WithoutCancel(ctx), w.rec.Run, life); err != nil {
		w.log.Warn().Err(err).Msg("claim not left")
	}
}

// warn tells people on the run's record and in its events.
func (w *worker) warn(err error) {
	if v := &w.rec.Verdict; !slices.Contains(v.Warnings, err.Error()) { // each sweep may meet it again
		v.Warnings = append(v.Warnings, err.Error())
	}
	w.emit(Event{Kind: EventWarning, Text: err.Error()})
}
