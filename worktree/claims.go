package worktree

import (
	"context"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/refname"
)

type (
	// Claim is a held claim.
	Claim = claim.Claim
	// ClaimState is a claim as others see it.
	ClaimState = claim.State
	// Holder is who holds a claim.
	Holder = claim.Holder
	// ClaimRecord is what is known of an issue's runs.
	ClaimRecord = claim.Record
	// TakenError names who holds a claim.
	TakenError = claim.TakenError
)

// Claim takes the issue for a holder with an Owner, or fails with [*TakenError], or wraps ErrRemote. ttl is how long it is valid
// without Renew. Host, PID, Started, Generation and Expires are filled in here. Another try with the same Owner and Run succeeds.
func (r *Repo) Claim(ctx context.Context, key string, h Holder, ttl time.Duration) (*Claim, error) {
	if err := refname.CheckKey(key); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return r.claims.Claim(ctx, key, h, ttl)
}

// Claims returns the state of all claims by key, finished and unreadable ones included.
func (r *Repo) Claims(ctx context.Context) (map[string]ClaimState, error) { return r.claims.List(ctx) }

// DropClaim removes a claim that cannot be read. One that can is kept, and one of a newer version is an error.
func (r *Repo) DropClaim(ctx context.Context, key string) error { return r.claims.Drop(ctx, key) }

// ForgetClaim removes a claim that nobody holds, with its record; see [claim.Store.Forget].
func (r *Repo) ForgetClaim(ctx context.Context, key string) (gone bool, err error) {
	return r.claims.Forget(ctx, key)
}
