package pool

import (
	"errors"
	"strings"
	"sync"
)

// Why a run is asked to end; a *disk.TakenError is a reason, too.
var (
	errStopped   = errors.New("ralph was stopped")
	errAsked     = errors.New("stopped by `ralph stop`")
	errClaimLost = errors.New("the claim was lost to another ralph")
)

// supersededError says that the issue does not want to be worked any more.
type supersededError struct{ reason string }

func (e *supersededError) Error() string {
	for _, verb := range []string{"lacks ", "carries "} {
		if strings.HasPrefix(e.reason, verb) {
			return "the issue " + e.reason
		}
	}
	return "the issue is " + e.reason
}

// stopper carries the first reason to end a run to whoever waits for it.
type stopper struct {
	done chan struct{}

	mu  sync.Mutex
	err error // guarded by mu
}

func newStopper() *stopper { return &stopper{done: make(chan struct{})} }

func (s *stopper) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = cause
		close(s.done)
	}
}

// cause is nil until somebody stops.
func (s *stopper) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
