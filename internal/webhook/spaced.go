package webhook

import (
	"sync"
	"time"
)

// spaced makes of many calls few. It is safe for concurrent use.
type spaced struct {
	mu      sync.Mutex
	next    time.Time // guarded by mu; when another call may be made
	pending bool      // guarded by mu; one is due then
}

// call calls do at once, or, if it did less than every ago, when that time is over: once for all calls until then.
func (s *spaced) call(every time.Duration, do func()) {
	s.mu.Lock()
	if s.pending {
		s.mu.Unlock()
		return
	}
	if wait := time.Until(s.next); wait > 0 {
		s.pending = true
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			s.pending, s.next = false, time.Now().Add(every)
			s.mu.Unlock()
			do()
		})
		s.mu.Unlock()
		return
	}
	s.next = time.Now().Add(every)
	s.mu.Unlock()
	do()
}
