package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// stopPoll is how often a run looks for a `ralph stop`.
const stopPoll = 500 * time.Millisecond

// keep watches over a run while it is on, until ctx ends: it renews the claim, looks whether the issue still wants to
// be worked, and whether somebody asked to stop. The channel closes when nothing of it runs any more.
func (w *worker) keep(ctx context.Context, kill context.CancelCauseFunc) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		renew := time.NewTicker(w.p.cfg.ClaimLife / 3)
		defer renew.Stop()
		look := time.NewTicker(w.p.cfg.Reconcile)
		defer look.Stop()
		asked := time.NewTicker(stopPoll)
		defer asked.Stop()
		progress := time.NewTimer(w.p.cfg.ProgressReport)
		defer progress.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-renew.C:
				if w.lost(ctx) {
					w.stop.stop(errClaimLost)
					kill(errClaimLost)
					return
				}
			case <-look.C:
				w.reconcile(ctx)
			case <-asked.C:
				if w.files.stopRequested() {
					w.stop.stop(errAsked)
				}
			case <-progress.C:
				w.reportProgress(ctx)
			}
		}
	}()
	return done
}

// lost renews the claim. A remote that cannot be reached does not take the claim away before it expires.
func (w *worker) lost(ctx context.Context) bool {
	err := w.claim.Renew(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case errors.Is(err, worktree.ErrLost):
		return true
	}
	w.log.Warn().Err(err).Msg("claim not renewed")
	return time.Now().After(w.claim.Holder().Expires)
}

// reconcile stops the run when its issue was closed, unlabelled or blocked. What cannot be read changes nothing.
func (w *worker) reconcile(ctx context.Context) {
	issue, err := w.p.cfg.Tracker.Get(ctx, w.rec.Key)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		w.stop.stop(&supersededError{"gone"})
	case err != nil:
		w.log.Debug().Err(err).Msg("issue not refreshed")
	default:
		reason := w.p.unfit(issue)
		if w.follow != nil { // its issue has lost the pick-up label long ago
			reason = ""
			if !issue.Open {
				reason = "closed"
			}
		}
		if reason != "" {
			w.stop.stop(&supersededError{reason})
		}
	}
}
