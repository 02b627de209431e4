package gitlab

import (
	"context"
	"sync"
)

// keyed gives each key one holder at a time. The zero value is ready.
type keyed struct {
	mu    sync.Mutex
	turns map[string]*turn // guarded by mu
}

type turn struct {
	gate  chan struct{}
	users int
}

// lock waits for the key; release gives it back. It returns context.Cause(ctx) when ctx ends first.
func (k *keyed) lock(ctx context.Context, key string) (release func(), err error) {
	k.mu.Lock()
	if k.turns == nil {
		k.turns = map[string]*turn{}
	}
	t := k.turns[key]
	if t == nil {
		t = &turn{gate: make(chan struct{}, 1)}
		k.turns[key] = t
	}
	t.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(k.turns, key)
		}
	}
	select {
	case t.gate <- struct{}{}:
		return func() { <-t.gate; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
