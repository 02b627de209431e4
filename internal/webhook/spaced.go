package webhook

import (
	"sync"
	"time"
)

// rateLimit limits the rate of calls. It is safe for concurrent use.
type rateLimit struct {
	mu      sync.Mutex
	next    time.Time // guarded by mu; earliest time of the next call
	pending bool      // guarded by mu; a call is scheduled for then
}

// run calls do immediately if the last call was at least every ago. Otherwise it schedules one call for that time, on
// behalf of all calls until then.
func (s *rateLimit) run(every time.Duration, do func()) {
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
