package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
)

// Clock provides the time. Tests replace it.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If ctx ends before, it returns context.Cause(ctx).
	Sleep(ctx context.Context, d time.Duration) error
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error { return retry.Sleep(ctx, d) }

// skew measures the difference between this machine's clock and the forge's, by the Date header of answers.
type skew struct {
	clock Clock

	mu     sync.Mutex
	known  bool
	offset time.Duration // this machine's clock minus the forge's; guarded by mu
}

// record measures one answer. Date has whole seconds and the answer took time, so less than two seconds count as zero.
func (s *skew) record(h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	by := s.clock.Now().Sub(date)
	if by.Abs() > 100*365*24*time.Hour { // not plausible, and the arithmetic could overflow
		return
	}
	if by.Abs() < 2*time.Second {
		by = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset, s.known = by, true
}

func (s *skew) clockOffset() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset, s.known
}

func (s *skew) now() time.Time {
	by, _ := s.clockOffset()
	return s.clock.Now().Add(-by)
}
