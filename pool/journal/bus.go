package journal

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxWaiting is the number of events that wait for an observer. Above it, events are dropped: first those that only show
// progress, then the oldest.
const maxWaiting = 4096

// Bus passes events to one observer, in order, and never blocks a sender. It runs a goroutine only while events wait, so it
// needs no Close. It is safe for concurrent use.
type Bus struct {
	observe func(Event)

	mu      sync.Mutex
	waiting []Event       // guarded by mu
	dropped int           // guarded by mu
	idle    chan struct{} // guarded by mu; nil unless the goroutine runs, which closes it
}

// NewBus makes a bus that calls observe from one goroutine; a nil observe discards events.
func NewBus(observe func(Event)) *Bus {
	if observe == nil {
		observe = func(Event) {}
	}
	return &Bus{observe: observe}
}

// Emit sends an event to the observer.
func (b *Bus) Emit(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= maxWaiting {
		at := max(0, slices.IndexFunc(b.waiting, Event.Progress)) // all are important: drop the oldest, so that memory stays bounded
		b.waiting = slices.Delete(b.waiting, at, at+1)
		b.dropped++
	}
	b.waiting = append(b.waiting, e)
	if b.idle == nil {
		b.idle = make(chan struct{})
		go b.deliver()
	}
}

func (b *Bus) deliver() {
	for {
		b.mu.Lock()
		batch, dropped := b.waiting, b.dropped
		b.waiting, b.dropped = nil, 0
		if len(batch) == 0 {
			close(b.idle)
			b.idle = nil
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		if dropped > 0 {
			b.observe(Event{Kind: EventDropped, Time: batch[0].Time, Pool: batch[0].Pool, Count: dropped})
		}
		for _, e := range batch {
			b.observe(e)
		}
	}
}

// observerTimeout is how long Flush waits for a slow observer after everything else has ended.
const observerTimeout = 3 * time.Second

// Flush waits until every event has been observed. Once ctx or hard has ended, it waits for at most observerTimeout.
func (b *Bus) Flush(ctx, hard context.Context) {
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
		return
	case <-ctx.Done():
	case <-hard.Done():
	}
	select {
	case <-idle:
	case <-time.After(observerTimeout):
	}
}
