package transport

import (
	"context"
	"net/http"
	"time"
)

// paced makes writes one at a time and spaced, as forges ask of programs. Reads are not delayed.
type paced struct {
	next    http.RoundTripper
	clock   Clock
	spacing time.Duration
	turn    chan time.Time // holds the end time of the last write unless a write is in progress
}

func newPaced(next http.RoundTripper, clock Clock, spacing time.Duration) *paced {
	p := &paced{next: next, clock: clock, spacing: spacing, turn: make(chan time.Time, 1)}
	p.turn <- time.Time{}
	return p
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if reads(r) {
		return p.next.RoundTrip(r)
	}
	ctx := r.Context()
	var last time.Time
	select {
	case last = <-p.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { p.turn <- last }()
	if !last.IsZero() {
		if err := p.clock.Sleep(ctx, last.Add(p.spacing).Sub(p.clock.Now())); err != nil {
			return nil, err
		}
	}
	resp, err := p.next.RoundTrip(r)
	last = p.clock.Now()
	return resp, err
}
