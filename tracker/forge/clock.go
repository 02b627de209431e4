package forge

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Clock tells and passes time.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with context.Cause(ctx) when ctx ends before.
	Sleep(ctx context.Context, d time.Duration) error
}

// wall is the real clock.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// skew is how far this machine's clock is from the forge's, by the Date of its answers.
type skew struct {
	clock Clock

	mu    sync.Mutex
	known bool
	by    time.Duration // this machine's minus the forge's; guarded by mu
}

// note learns from an answer. A Date has whole seconds and the answer travelled, so that a difference below two seconds
// is none.
func (s *skew) note(h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	by := s.clock.Now().Sub(date)
	if by.Abs() < 2*time.Second {
		by = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by, s.known = by, true
}

func (s *skew) ahead() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by, s.known
}

func (s *skew) now() time.Time {
	by, _ := s.ahead()
	return s.clock.Now().Add(-by)
}
