package worktree

import (
	"context"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

type (
	// Claim is a held claim.
	Claim = claim.Claim
	// ClaimState is the state of a claim as read from its ref.
	ClaimState = claim.State
	// Holder identifies the holder of a claim.
	Holder = claim.Holder
	// ClaimRecord is what a claim records about the runs of its issue.
	ClaimRecord = claim.Record
	// TakenError names the holder of a claim that is taken.
	TakenError = claim.TakenError
)

// Claim takes the claim on an issue; h.Owner is required. It fails with [*TakenError] if somebody else holds the claim, and
// wraps ErrRemote if the remote fails. The claim expires after ttl unless Renew is called. Claim fills in Host, PID,
// Started, Generation and Expires. Calling it again with the same Owner and Run succeeds.
func (r *Repo) Claim(ctx context.Context, key string, h Holder, ttl time.Duration) (*Claim, error) {
	if err := refname.CheckKey(key); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return r.claims.Claim(ctx, key, h, ttl)
}

// Claims returns the state of all claims by key, including finished and unreadable ones.
func (r *Repo) Claims(ctx context.Context) (map[string]ClaimState, error) { return r.claims.List(ctx) }

// DropClaim removes an unreadable claim. It keeps a readable one, and fails for one written by a newer version of ralph.
func (r *Repo) DropClaim(ctx context.Context, key string) error { return r.claims.Drop(ctx, key) }

// ForgetClaim removes a claim without a holder, and its record; see [claim.Store.Forget].
func (r *Repo) ForgetClaim(ctx context.Context, key string) (gone bool, err error) {
	return r.claims.Forget(ctx, key)
}
