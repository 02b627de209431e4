package fleet

import (
	"context"
	"sync"
)

// slots are how many issues this machine works at the same time, of all projects. Its methods are safe for concurrent use.
type slots struct {
	mu    sync.Mutex
	most  int           // guarded by mu; 0: any number
	taken int           // guarded by mu
	freed chan struct{} // guarded by mu; closed when there may be room; nil: nobody waits
}

// SetParallel changes how many issues of all projects are worked here at the same time; 0: as many as the projects allow. Runs
// that are on go on.
func (f *Fleet) SetParallel(n int) { f.slots.set(n) }

func (s *slots) set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = n
	s.notify()
}

// notify wakes all that wait. mu is held.
func (s *slots) notify() {
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// take waits for a slot until ctx ends. The caller calls free.
func (s *slots) take(ctx context.Context) (free func(), ok bool) {
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

func (s *slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.notify()
}
