package claims

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree"
)

// Slow wraps a source and reports long waits for the remote; see [workspace.BeginWait].
type Slow struct{ Source }

// Claim implements Source.
func (s Slow) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	defer workspace.BeginWait(ctx, "claiming "+key+" on")()
	return s.Source.Claim(ctx, key, h, ttl)
}

// Claims implements Source.
func (s Slow) Claims(ctx context.Context) (map[string]worktree.ClaimState, error) {
	defer workspace.BeginWait(ctx, "reading the claims on")()
	return s.Source.Claims(ctx)
}
