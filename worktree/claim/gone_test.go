package claim

import (
	"context"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// collected is refs of a repository where git gc runs just before a claim's ref moves.
type collected struct {
	refs
	gc func()
}

func (c collected) swap(ctx context.Context, key, old, new string, also ...git.Edit) error {
	c.gc()
	return c.refs.swap(ctx, key, old, new, also...)
}

// Until the ref points to it, nothing protects a claim's commit from git gc --prune=now.
func TestCommitIsCollected(t *testing.T) {
	everywhere(t, func(s *site) {
		refs := s.store.refs
		during := func(step func() error) {
			s.Helper()
			var once sync.Once
			s.store.refs = collected{refs, func() { once.Do(func() { s.git("gc", "--quiet", "--prune=now") }) }}
			if err := step(); err != nil {
				s.Error(err)
			}
		}
		var c *Claim
		during(func() (err error) {
			c, err = s.store.Claim(s.Context(), "k", Holder{Owner: "a", Run: "r1"}, ttl)
			return err
		})
		if c == nil {
			return
		}
		during(func() error { return c.Renew(s.Context()) })
		during(func() error { return c.Finish(s.Context(), Record{Run: "r1"}) })
		if state := s.state(s.store); state.Finished == nil {
			s.Errorf("%+v", state)
		}
	})
}
