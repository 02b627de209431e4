package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// deferral is an error that leaves the rest of the run to the next sweep.
type deferral struct {
	error
	affectsAll bool // other runs would fail for the same reason
}

func (e *deferral) Unwrap() error { return e.error }

// warn adds a warning to the run's record and to its events.
func (x *execution) warn(s journal.State, err error) journal.State {
	s.Warn(sandboxes.Notice{Text: err.Error()})
	x.events.Warn(err.Error())
	return s
}

// deferRun stores the run for the next sweep to continue.
func (x *execution) deferRun(ctx context.Context, s *journal.State, err error) {
	if away, ok := errors.AsType[*deferral](err); ok && away.affectsAll {
		x.result.Unavailable = away.error
	}
	s.Warnings = append(s.Warnings, x.space.CloseSandbox(ctx)...)
	x.result.Deferred = fmt.Errorf("stage %s is left to the next sweep: %w", s.Stage, err)
	s.Warn(sandboxes.Notice{Text: x.result.Deferred.Error()})
	x.events.Emit(journal.Event{Kind: journal.EventDeferred, Text: x.result.Deferred.Error()})
	x.reportDeclined(ctx, *s, err)
	x.events.StopObeyed()
	s.PID = 0
	_ = x.save(ctx, *s) // on failure this process still knows it
	ctx, done := x.stop.ForRelease(ctx)
	defer done()
	if err := x.claim.Reserve(ctx, x.r.ReservedFor(s.Stage)); err != nil {
		x.log.Warn("claim not left", "error", err)
	}
}

// ReservedFor returns how long the claim of a run deferred at this stage stays reserved: longer if its commits are only on this host.
func (r *Runner) ReservedFor(stage journal.Stage) time.Duration {
	if stage == journal.StageVerify || stage == journal.StagePublish {
		return claim.MaxTTL
	}
	return r.c.ClaimTTL
}

// Folder returns the folder of a run.
func (r *Runner) Folder(key, id string) string {
	return filepath.Join(r.c.Repo.StateDir(), "runs", key, id)
}

// Host returns the name of this machine in records.
func (r *Runner) Host() string { return r.host }

// Dead reports whether no process works on the run: it was deferred, or its process on this host has died.
func (r *Runner) Dead(rec journal.Record) bool {
	return rec.PID == 0 || rec.Host == r.host && !proc.Alive(rec.PID, rec.Process)
}
