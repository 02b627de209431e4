// Package slots says how many issues a machine works at the same time, whatever their project.
package slots

import (
	"context"
	"sync"
)

// Slots are as many as Set says; the zero value is any number. Its methods are safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	most  int           // guarded by mu; 0: any number
	taken int           // guarded by mu
	freed chan struct{} // guarded by mu; closed when there may be room; nil: nobody waits
}

// Set changes how many there are; 0: any number. Who has one keeps it.
func (s *Slots) Set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = n
	s.notify()
}

// notify wakes all that wait. mu is held.
func (s *Slots) notify() {
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// Take waits for a slot until ctx ends. The caller calls free.
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
