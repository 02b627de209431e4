package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ralph-pool/ralph/worktree"
)

// fence makes sure, by moving it, that the claim is still ours: what follows takes effect outside. It returns false, with
// the run stopped, when it is not.
func (w *worker) fence(ctx context.Context) bool {
	if !w.owned() || w.claim == nil {
		return false
	}
	err := w.claim.Renew(ctx)
	if errors.Is(err, worktree.ErrLost) || err != nil && w.expired() {
		w.stop.stop(errClaimLost)
		return false
	}
	if err != nil {
		w.log.Warn().Err(err).Msg("claim not renewed")
	}
	return true
}

// expired goes by the clock on the wall, which also runs while the machine sleeps.
func (w *worker) expired() bool {
	return !time.Now().Round(0).Before(w.claim.Holder().Expires.Round(0))
}

// stillWanted looks at the issue once more before anything is published for it.
func (w *worker) stillWanted(ctx context.Context) bool {
	if w.rec.Verdict.Published != "" { // the issue may show already what became of it
		return true
	}
	w.reconcile(ctx)
	var over *supersededError
	return !errors.As(w.stop.cause(), &over)
}
