package github

import (
	"context"
	"sync"
)

// keyed is a lock for each key. The zero value is ready.
type keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when free; guarded by mu
}

// lock returns when nobody else holds the key, or with context.Cause(ctx).
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		k.mu.Lock()
		busy, taken := k.held[key]
		if !taken {
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			free := make(chan struct{})
			k.held[key] = free
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.held, key)
				k.mu.Unlock()
				close(free)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		}
	}
}
