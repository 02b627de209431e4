package dashboard

import (
	"context"
	"sync"
	"time"
)

// kept keeps the latest value of each project that takes long to make. Pages show it while the next one is being made. It is safe
// for concurrent use.
type kept[T any] struct {
	mu   sync.Mutex
	list map[string]*making[T] // guarded by mu; by project
}

// making is one project's value. The fields are guarded by kept.mu.
type making[T any] struct {
	value T
	err   error
	of    string // what the value was made of
	at    time.Time
	done  chan struct{} // closed when the next value is there; nil: none is being made
}

// wanted is the value that a page asks for.
type wanted struct {
	project  string
	of       string        // what it has to be made of
	age      time.Duration // how old it may be
	patience time.Duration // how long to wait while another one is made
}

// maker makes the next value from the last one.
type maker[T any] func(ctx context.Context, last T) (T, error)

// get returns the latest value, and has another one made when that one is not the wanted one; current is false when the value is
// still the old one. While there is no value, it is the zero one.
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

// entry is of a project. k.mu is held.
func (k *kept[T]) entry(project string) *making[T] {
	if k.list == nil {
		k.list = map[string]*making[T]{}
	}
	if k.list[project] == nil {
		k.list[project] = &making[T]{}
	}
	return k.list[project]
}

// stale has the next call of get make a value.
func (k *kept[T]) stale(project string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.entry(project).of = "?" // also while one is being made
}
