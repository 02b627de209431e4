package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// UnavailableError says that the agents, their sandbox or the gate cannot be used for now.
type UnavailableError struct {
	Agents []agents.Choice
	Key    string // an issue whose run met it earlier; may be empty
	Reason journal.Reason
	Until  time.Time // when it is expected back; zero when unknown
}

func (e *UnavailableError) Error() string {
	if e.Reason.Code == journal.ReasonOpen {
		return e.Reason.Detail
	}
	return fmt.Sprintf("%s: %s", report.Unavailable(e.Agents), e.Reason.Detail)
}

// deferral is an error that leaves a stage to the next sweep.
type deferral struct {
	err      error
	everyone bool // it would keep every other run from its end, too
}

func (e *deferral) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *deferral) Unwrap() error { return e.err }

// Unreachable reports that the tracker or the remote cannot be used now: working other issues is of no use.
func Unreachable(err error) bool {
	if errors.Is(err, tracker.ErrNotFound) { // whatever has hidden it: other issues are there
		return false
	}
	_, away := errors.AsType[*tracker.UnavailableError](err)
	_, refused := errors.AsType[*tracker.RefusedError](err)
	return away || refused || errors.Is(err, worktree.ErrRemote)
}

// outage reports that the tracker or the remote does not answer. That passes by itself, and says nothing about the run.
func outage(err error) bool {
	_, away := errors.AsType[*tracker.UnavailableError](err)
	return away || errors.Is(err, worktree.ErrAway)
}

// note adds a warning once: each sweep may meet it again.
func note(list []string, text string) []string {
	for _, w := range list {
		if w == text {
			return list
		}
	}
	return append(list, text)
}

// warn tells people, on the run's record and in its events.
func (x *execution) warn(s journal.State, err error) journal.State {
	s.Warnings = note(s.Warnings, err.Error())
	x.emit(journal.Event{Kind: journal.EventWarning, Text: err.Error()})
	return s
}

// later leaves the rest of the run to the next sweep.
func (x *execution) later(ctx context.Context, s journal.State, err error) journal.State {
	var away *deferral
	if errors.As(err, &away) && away.everyone {
		x.result.Unavailable = away.err
	}
	s.Warnings = append(s.Warnings, x.space.Shut(ctx)...)
	x.result.Deferred = fmt.Errorf("stage %s is left to the next sweep: %w", s.Stage, err)
	s.Warnings = note(s.Warnings, x.result.Deferred.Error())
	x.emit(journal.Event{Kind: journal.EventDeferred, Text: x.result.Deferred.Error()})
	x.waits(ctx, s, err)
	s.PID = 0
	x.save(ctx, s)
	x.leaveClaim(ctx, s)
	return s
}

// leftTTL is how long an issue waits for a run whose commits are on this host only; other runs wait for ClaimTTL.
const leftTTL = 24 * time.Hour

// leaveClaim keeps others from the issue until the run is continued.
func (x *execution) leaveClaim(ctx context.Context, s journal.State) {
	if x.claim == nil || x.task.Shared {
		return
	}
	if err := x.claim.Leave(context.WithoutCancel(ctx), x.run.ID, x.r.LeftFor(s.Stage)); err != nil {
		x.log.Warn("claim not left", "error", err)
	}
}

// LeftFor is how long a run that is left at the stage keeps others from its issue.
func (r *Runner) LeftFor(stage journal.Stage) time.Duration {
	if stage == journal.StageVerify || stage == journal.StagePublish {
		return leftTTL
	}
	return r.c.ClaimTTL
}
