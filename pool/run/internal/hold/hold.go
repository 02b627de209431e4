// Package hold manages a run's claim: whether the run may act for its issue, and what it records in the claim.
//
// A run may act outward only while it provably holds its claim. It asks right before each effect:
//   - [Claim.MayPublish] before commits leave the run's own branch. It renews the claim, unless the run begins with a push that moves
//     branch and claim in one step: git itself refuses that push to a run that has lost its claim.
//   - [Claim.MayAct] before the final report, the labels and the end of the claim. A claim that has not expired is enough, because
//     nobody else may take it; an expired one is renewed. A claim that this run has finished is enough, too: nobody works the issue.
//   - [Claim.Valid] before notes of progress. They are not worth a renewal.
//
// A lost claim is never held again. A claim is lost when a renewal or an effect is refused, or when it expires and cannot be
// renewed. In the latter case perhaps nobody has taken it, and the next sweep may do what is left; see [Claim.Lapsed].
package hold

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// Config describes the run of a claim. All fields but Shared are required.
type Config struct {
	Run    string // the run's id
	Kind   journal.Kind
	Shared bool          // another run owns the claim and uses it afterwards
	TTL    time.Duration // the claim is renewed at a third of it
	Stop   *halt.Switch  // stopped with StopClaimLost when the claim is lost
	Log    *slog.Logger
}

// Claim is the claim of one run. Make one with New. It is safe for concurrent use.
type Claim struct {
	ref      *worktree.Claim // nil: lost before the run began
	cfg      Config
	refused  atomic.Bool // somebody else has the claim
	spending sync.Mutex  // held while spending is recorded
}

// New returns the claim of a run. If ref is nil, the claim is lost.
func New(ref *worktree.Claim, c Config) *Claim {
	if ref == nil {
		c.Stop.Stop(halt.Error(journal.StopClaimLost, ""))
	}
	return &Claim{ref: ref, cfg: c}
}

// Held reports whether the run has the claim as far as this process knows. It makes no request.
func (c *Claim) Held() bool { return !c.cfg.Stop.Is(journal.StopClaimLost) }

// Valid reports whether the run has the claim and nobody else may take it yet. It makes no request.
func (c *Claim) Valid() bool { return c.Held() && !c.expired() }

// MayAct reports whether the run may act outward. It renews an expired claim.
func (c *Claim) MayAct(ctx context.Context) bool { return c.Valid() || c.ended() || c.renewToAct(ctx) }

// Lapsed reports whether the claim is lost only because it expired, so that this run may still be able to take it again.
func (c *Claim) Lapsed() bool { return c.ref != nil && !c.Held() && !c.refused.Load() }

// ended reports whether this run has given the claim up. A push may do so at the moment in which the claim expires.
func (c *Claim) ended() bool { return c.ref != nil && !c.refused.Load() && c.ref.Released() }

// MayPublish reports whether the run may publish. pushFirst means that publishing begins with a Push, and that nothing leaves the
// run's own branch before it.
func (c *Claim) MayPublish(ctx context.Context, pushFirst bool) bool {
	if pushFirst && c.movesWithBranch() {
		return c.Held()
	}
	return c.renewToAct(ctx)
}

// Lost reports whether err, from an outward effect, means that the claim is lost. If so, it stops the run.
func (c *Claim) Lost(err error) bool {
	lost := errors.Is(err, worktree.ErrLost)
	if lost {
		c.refused.Store(true)
		c.stopRun()
	}
	return lost
}

// Heartbeat renews the claim until ctx ends. When the claim is lost or has expired, it stops the run and returns true. A remote
// that hangs cannot delay that.
func (c *Claim) Heartbeat(ctx context.Context) (lost bool) {
	if c.ref == nil {
		return false
	}
	for retry.Sleep(ctx, c.cfg.TTL/3) == nil {
		limit, cancel := context.WithTimeoutCause(ctx, c.ref.TimeLeft(), worktree.ErrRemote)
		err := c.ref.Renew(limit)
		cancel()
		switch {
		case ctx.Err() != nil || c.ended():
			return false
		case c.Lost(err):
			return true
		case err != nil:
			c.cfg.Log.Warn("claim not renewed", "error", err)
		}
		if c.expired() {
			c.stopRun()
			return true
		}
	}
	return false
}

// renewToAct renews the claim. If the claim is lost, it stops the run and returns false. After any other failure the claim
// stays valid until it expires. A renewal that succeeds only after the expiry does not keep the claim.
func (c *Claim) renewToAct(ctx context.Context) bool {
	if !c.Held() {
		return false
	}
	err := c.ref.Renew(ctx)
	if c.Lost(err) {
		return false
	}
	if c.expired() {
		c.stopRun()
		return false
	}
	if err != nil {
		c.cfg.Log.Warn("claim not renewed", "error", err)
	}
	return true
}

// expired reports whether another process may take the claim.
func (c *Claim) expired() bool { return c.ref.TimeLeft() <= 0 }

// stopRun stops the run.
func (c *Claim) stopRun() { c.cfg.Stop.Stop(halt.Error(journal.StopClaimLost, "")) }

// movesWithBranch reports whether branch and claim move in one step.
func (c *Claim) movesWithBranch() bool { return c.cfg.Kind == journal.KindIssue && !c.cfg.Shared }
