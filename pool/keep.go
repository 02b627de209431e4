package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// stopPoll is how often a run looks for a `ralph stop`.
const stopPoll = 500 * time.Millisecond

// keep watches over a run while it is on, until ctx ends: it renews the claim, looks whether the issue still wants to
// be worked, and whether somebody asked to stop. The channel closes when nothing of it runs any more.
func (w *worker) keep(ctx context.Context, kill context.CancelCauseFunc) <-chan struct{} {
	var watching sync.WaitGroup
	watching.Go(func() {
		if w.untilLost(ctx) {
			w.stop.stop(errClaimLost)
			kill(errClaimLost)
		}
	})
	watching.Go(func() { w.watch(ctx) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		watching.Wait()
	}()
	return done
}

// watch looks at the issue and for requests to stop.
func (w *worker) watch(ctx context.Context) {
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
}

// untilLost renews the claim until ctx ends. It returns true when the claim is somebody else's, and when it has expired:
// others may take it then, whatever has kept us from renewing it. A remote that hangs cannot delay that.
func (w *worker) untilLost(ctx context.Context) bool {
	for {
		expires := w.claim.Holder().Expires
		next := time.NewTimer(w.p.cfg.ClaimLife / 3)
		select {
		case <-ctx.Done():
			next.Stop()
			return false
		case <-next.C:
		}
		limit, cancel := context.WithDeadlineCause(ctx, expires, worktree.ErrRemote)
		err := w.claim.Renew(limit)
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, worktree.ErrLost):
			return true
		case err != nil:
			w.log.Warn().Err(err).Msg("claim not renewed")
		}
		if !time.Now().Before(w.claim.Holder().Expires) {
			return true
		}
	}
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
		reason := w.p.unfitFor(issue, w.require)
		if w.following { // its issue has lost the pick-up label long ago
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
