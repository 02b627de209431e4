package dashboard

import (
	"context"
	"sync"
	"time"
)

// cache caches the latest value of each project that takes long to compute. Pages show it while the next one is computed. It
// is safe for concurrent use.
type cache[T any] struct {
	mu   sync.Mutex
	list map[string]*cacheEntry[T] // guarded by mu; by project
}

// cacheEntry is the cached value of one project. cache.mu guards the fields.
type cacheEntry[T any] struct {
	value    T
	err      error
	inputKey string // key of the value's input
	at       time.Time
	done     chan struct{} // closed when the next value is ready; nil: none is being computed
}

// cacheRequest describes the value that a page needs.
type cacheRequest struct {
	project  string
	inputKey string        // key of its input
	age      time.Duration // maximum age
	patience time.Duration // maximum wait for the next value
}

// computeFunc computes the next value from the last one.
type computeFunc[T any] func(ctx context.Context, last T) (T, error)

// get returns the latest value, and starts to compute the next one if the latest is not the wanted one. current is false if
// the returned value is not the wanted one; before the first value it is the zero value.
func (k *cache[T]) get(ctx context.Context, w cacheRequest, next computeFunc[T]) (value T, current bool, err error) {
	ctx = context.WithoutCancel(ctx)
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.entry(w.project)
	for tried := false; ; {
		if time.Since(m.at) < w.age && m.inputKey == w.inputKey && m.err == nil && m.done == nil {
			return m.value, true, nil
		}
		if tried && m.done == nil && m.err != nil {
			return m.value, false, m.err
		}
		if m.done == nil {
			m.done, m.inputKey, tried = make(chan struct{}), w.inputKey, true
			go k.compute(ctx, m, m.done, m.value, next)
		}
		done := m.done
		k.mu.Unlock()
		over := false
		select {
		case <-done:
		case <-timer.C:
			over = true
		}
		k.mu.Lock()
		if over {
			return m.value, false, m.err
		}
	}
}

func (k *cache[T]) compute(ctx context.Context, m *cacheEntry[T], done chan struct{}, old T, next computeFunc[T]) {
	value, err := next(ctx, old)
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.err, m.done = err, nil; err == nil {
		m.value, m.at = value, time.Now()
	}
	close(done)
}

// entry returns the entry of a project. The caller holds k.mu.
func (k *cache[T]) entry(project string) *cacheEntry[T] {
	if k.list == nil {
		k.list = map[string]*cacheEntry[T]{}
	}
	if k.list[project] == nil {
		k.list[project] = &cacheEntry[T]{}
	}
	return k.list[project]
}

// stale makes the next call of get compute a new value.
func (k *cache[T]) stale(project string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entry(project).inputKey = "?" // has an effect even while a value is being computed
}
