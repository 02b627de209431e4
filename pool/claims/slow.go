package claims

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/worktree"
)

// Slow is a source that tells when its remote takes long. It is safe for concurrent use.
type Slow struct {
	Source
	Remote string // empty: there is none, and nothing is told
	After  time.Duration
	Say    func(text string)

	said atomic.Bool
}

// Begin has the next wait told, and none after it.
func (s *Slow) Begin() { s.said.Store(false) }

// Claim is that of the source.
func (s *Slow) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	defer s.Waiting("claiming " + key + " on")()
	return s.Source.Claim(ctx, key, h, ttl)
}

// Claims is that of the source.
func (s *Slow) Claims(ctx context.Context) (map[string]worktree.ClaimState, error) {
	defer s.Waiting("reading the claims on")()
	return s.Source.Claims(ctx)
}

// Waiting says what the remote is waited for. The function it returns is for when that is over.
func (s *Slow) Waiting(what string) (over func() bool) {
	if s.Remote == "" {
		return func() bool { return false }
	}
	return time.AfterFunc(s.After, func() {
		if !s.said.Swap(true) {
			s.Say("still " + what + " " + s.Remote)
		}
	}).Stop
}
