package transport

import (
	"context"
	"net/http"
	"time"
)

// writePacer makes writes one at a time and spaced, as forges ask of programs. Reads are not delayed.
type writePacer struct {
	next      http.RoundTripper
	clock     Clock
	spacing   time.Duration
	lastWrite chan time.Time // holds the end time of the last write unless a write is in progress
}

func newWritePacer(next http.RoundTripper, clock Clock, spacing time.Duration) *writePacer {
	p := &writePacer{next: next, clock: clock, spacing: spacing, lastWrite: make(chan time.Time, 1)}
	p.lastWrite <- time.Time{}
	return p
}

func (p *writePacer) RoundTrip(r *http.Request) (*http.Response, error) {
	if isRead(r) {
		return p.next.RoundTrip(r)
	}
	ctx := r.Context()
	var last time.Time
	select {
	case last = <-p.lastWrite:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { p.lastWrite <- last }()
	if !last.IsZero() {
		if err := p.clock.Sleep(ctx, last.Add(p.spacing).Sub(p.clock.Now())); err != nil {
			return nil, err
		}
	}
	resp, err := p.next.RoundTrip(r)
	last = p.clock.Now()
	return resp, err
}
