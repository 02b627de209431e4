// Package slots limits how many issues a machine works at a time, over all projects.
package slots

import (
	"context"
	"sync"
)

// Slots is a counter with a limit; the zero value has no limit. It is safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	most  int           // guarded by mu; 0: no limit
	taken int           // guarded by mu
	freed chan struct{} // guarded by mu; closed when a slot may be free; nil: nobody waits
}

// Set changes the limit; 0: no limit. Slots already taken stay taken.
func (s *Slots) Set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = n
	s.notify()
}

// notify wakes all waiting calls. The caller holds mu.
func (s *Slots) notify() {
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// Take waits for a slot until ctx ends. The caller must call free to release it.
func (s *Slots) Take(ctx context.Context) (free func(), ok bool) {
	for {
		s.mu.Lock()
		if s.most == 0 || s.taken < s.most {
			s.taken++
			s.mu.Unlock()
			return sync.OnceFunc(s.free), true
		}
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (s *Slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.notify()
}
