package dashboard

import (
	"context"
	"sync"
	"time"
)

// kept caches the latest value of each project that takes long to compute. Pages show it while the next one is computed. It
// is safe for concurrent use.
type kept[T any] struct {
	mu   sync.Mutex
	list map[string]*making[T] // guarded by mu; by project
}

// making is the cached value of one project. kept.mu guards the fields.
type making[T any] struct {
	value T
	err   error
	of    string // key of the value's input
	at    time.Time
	done  chan struct{} // closed when the next value is ready; nil: none is being computed
}

// wanted describes the value that a page needs.
type wanted struct {
	project  string
	of       string        // key of its input
	age      time.Duration // maximum age
	patience time.Duration // maximum wait for the next value
}

// maker computes the next value from the last one.
type maker[T any] func(ctx context.Context, last T) (T, error)

// get returns the latest value, and starts to compute the next one if the latest is not the wanted one. current is false if
// the returned value is not the wanted one; before the first value it is the zero value.
func (k *kept[T]) get(ctx context.Context, w wanted, next maker[T]) (value T, current bool, err error) {
	ctx = context.WithoutCancel(ctx)
	timer := time.NewTimer(w.patience)
	defer timer.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.entry(w.project)
	for tried := false; ; {
		if time.Since(m.at) < w.age && m.of == w.of && m.err == nil && m.done == nil {
			return m.value, true, nil
		}
		if tried && m.done == nil && m.err != nil {
			return m.value, false, m.err
		}
		if m.done == nil {
			m.done, m.of, tried = make(chan struct{}), w.of, true
			go k.make(ctx, m, m.done, m.value, next)
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

func (k *kept[T]) make(ctx context.Context, m *making[T], done chan struct{}, old T, next maker[T]) {
	value, err := next(ctx, old)
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.err, m.done = err, nil; err == nil {
		m.value, m.at = value, time.Now()
	}
	close(done)
}

// entry returns the entry of a project. The caller holds k.mu.
func (k *kept[T]) entry(project string) *making[T] {
	if k.list == nil {
		k.list = map[string]*making[T]{}
	}
	if k.list[project] == nil {
		k.list[project] = &making[T]{}
	}
	return k.list[project]
}

// stale makes the next call of get compute a new value.
func (k *kept[T]) stale(project string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entry(project).of = "?" // has an effect even while a value is being computed
}
