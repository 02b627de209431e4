package transport

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

const (
	secondaryWait = time.Minute    // if the forge names no time
	shortestWait  = time.Second    // after one refusal; doubled with each further one
	longestWait   = 24 * time.Hour // upper limit of a time that the forge names
)

// limits waits for hourly and burst rate limits instead of failing. A request refused by a rate limit had no effect, so even
// a write may be repeated.
type limits struct {
	next  http.RoundTripper
	clock Clock
	skew  *skew
	max   time.Duration
	log   *slog.Logger

	mu          sync.Mutex
	until       time.Time      // end of the current wait; guarded by mu
	loggedUntil time.Time      // end of the wait that was logged last; guarded by mu
	remaining   map[string]int // remaining requests, by the name of the limit; guarded by mu
}

// recordRemaining records the number of remaining requests that an answer states.
func (l *limits) recordRemaining(h http.Header) {
	remaining, err := strconv.Atoi(cmp.Or(h.Get("X-RateLimit-Remaining"), h.Get("RateLimit-Remaining")))
	if err != nil || remaining < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := cmp.Or(h.Get("X-RateLimit-Resource"), h.Get("RateLimit-Name")); l.remaining[name] != 0 || len(l.remaining) < 16 {
		if l.remaining == nil {
			l.remaining = map[string]int{}
		}
		l.remaining[name] = remaining
	}
}

// CallsLeft returns the remaining requests of each of the forge's limits, as of the last answer.
func (s *Stack) CallsLeft() map[string]int {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return maps.Clone(s.limits.remaining)
}

func (l *limits) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline := l.clock.Now().Add(l.max)
	defaultWait, minWait := secondaryWait, shortestWait
	for { // ends soon, since the waits double
		if err := l.wait(r, deadline); err != nil {
			return nil, err
		}
		again, err := copyRequest(r)
		if err != nil {
			return nil, err
		}
		resp, err := l.next.RoundTrip(again)
		if err != nil {
			return nil, err
		}
		l.recordRemaining(resp.Header)
		now := l.clock.Now()
		switch until := limitedUntil(resp, now, l.skew.now()); {
		case !isRateLimited(resp):
			// This was the last request within the limit. Forges penalise clients that ignore that.
			if until.After(now) && resp.StatusCode < 400 && noneRemaining(resp.Header) {
				l.pauseUntil(until)
			}
			return resp, nil
		case until.IsZero():
			l.pauseUntil(now.Add(defaultWait))
			defaultWait *= 2
		default:
			l.pauseUntil(now.Add(minWait))
			l.pauseUntil(until)
			minWait *= 2
		}
	}
}

// wait blocks until requests are allowed, or fails if that is after the deadline.
func (l *limits) wait(r *http.Request, deadline time.Time) error {
	for {
		l.mu.Lock()
		until := l.until
		l.mu.Unlock()
		now := l.clock.Now()
		if !until.After(now) {
			if r.Context().Err() != nil {
				return context.Cause(r.Context())
			}
			return nil
		}
		if until.After(deadline) {
			return rateFailure(r, until)
		}
		l.logWait(until)
		tracker.NotifyWait(r.Context(), until)
		if err := l.clock.Sleep(r.Context(), until.Sub(now)); err != nil {
			return err
		}
	}
}

// logWait logs a wait once for all waiting requests.
func (l *limits) logWait(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.loggedUntil) {
		l.loggedUntil = until
		l.log.Warn("wait for the forge's rate limit", "until", until)
	}
}

func (l *limits) pauseUntil(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

// isRateLimited reports whether the forge refused a request because of a rate limit.
func isRateLimited(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("Retry-After") != "" || noneRemaining(resp.Header) || mentionsRateLimit(resp)
	}
	return false
}

func noneRemaining(h http.Header) bool {
	return cmp.Or(h.Get("X-RateLimit-Remaining"), h.Get("RateLimit-Remaining")) == "0"
}

func mentionsRateLimit(resp *http.Response) bool {
	body, err := io.ReadAll(resp.Body) // the body is in memory
	if err != nil {
		return false
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	text := strings.ToLower(string(body[:min(len(body), 4<<10)]))
	return strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
}

// limitedUntil returns when requests are allowed again, by this machine's clock, at most longestWait from now; zero if the
// answer does not say. forgeNow is the forge's time, in which it states the reset.
func limitedUntil(resp *http.Response, now, forgeNow time.Time) time.Time {
	const margin = time.Second // a reset is in whole seconds
	after := func(d time.Duration) time.Time { return now.Add(min(max(0, d), longestWait-margin) + margin) }
	if v := resp.Header.Get("Retry-After"); v != "" {
		if s, err := strconv.Atoi(v); err == nil && s >= 0 {
			return now.Add(time.Duration(min(s, int(longestWait/time.Second))) * time.Second)
		}
		if at, err := http.ParseTime(v); err == nil {
			return after(at.Sub(forgeNow))
		}
	}
	if !noneRemaining(resp.Header) {
		return time.Time{}
	}
	epoch, err := strconv.ParseInt(cmp.Or(resp.Header.Get("X-RateLimit-Reset"), resp.Header.Get("RateLimit-Reset")), 10, 64)
	if err != nil || epoch <= 0 {
		return time.Time{}
	}
	return after(time.Unix(min(epoch, 1<<40), 0).Sub(forgeNow)) // time.Unix overflows for the largest values
}
