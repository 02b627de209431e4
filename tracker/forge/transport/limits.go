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
	secondaryWait = time.Minute    // when a forge says "slow down" without a time
	shortestWait  = time.Second    // after one refusal; doubled with each further one
	longestWait   = 24 * time.Hour // that a forge is believed
)

// limits waits for rate limits, hourly ones and those against bursts, instead of failing. A request that was refused for
// its rate had no effect, so even a write may be repeated.
type limits struct {
	next  http.RoundTripper
	clock Clock
	skew  *skew
	max   time.Duration
	log   *slog.Logger

	mu    sync.Mutex
	until time.Time      // no request before; guarded by mu
	told  time.Time      // the wait that was logged last; guarded by mu
	left  map[string]int // requests that are left, by the name of the limit; guarded by mu
}

// note keeps how many requests an answer says are left.
func (l *limits) note(h http.Header) {
	left, err := strconv.Atoi(cmp.Or(h.Get("X-RateLimit-Remaining"), h.Get("RateLimit-Remaining")))
	if err != nil || left < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := cmp.Or(h.Get("X-RateLimit-Resource"), h.Get("RateLimit-Name")); l.left[name] != 0 || len(l.left) < 16 {
		if l.left == nil {
			l.left = map[string]int{}
		}
		l.left[name] = left
	}
}

// CallsLeft says how many requests each of the forge's limits had left with its last answer.
func (s *Stack) CallsLeft() map[string]int {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	return maps.Clone(s.limits.left)
}

func (l *limits) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline := l.clock.Now().Add(l.max)
	blind, least := secondaryWait, shortestWait
	for { // the doubled waits come to the deadline soon
		if err := l.wait(r, deadline); err != nil {
			return nil, err
		}
		again, err := rewind(r)
		if err != nil {
			return nil, err
		}
		resp, err := l.next.RoundTrip(again)
		if err != nil {
			return nil, err
		}
		l.note(resp.Header)
		now := l.clock.Now()
		switch until := limitedUntil(resp, now, l.skew.now()); {
		case !limited(resp):
			// This was the last request within the limit. Forges punish clients that ignore that.
			if until.After(now) && resp.StatusCode < 400 && exhausted(resp.Header) {
				l.pause(until)
			}
			return resp, nil
		case until.IsZero():
			l.pause(now.Add(blind))
			blind *= 2
		default:
			l.pause(now.Add(least))
			l.pause(until)
			least *= 2
		}
	}
}

// wait returns when requests may be made again, or fails when that is too late.
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
		l.tell(until)
		tracker.TellWait(r.Context(), until)
		if err := l.clock.Sleep(r.Context(), until.Sub(now)); err != nil {
			return err
		}
	}
}

// tell logs a wait, once for all requests that wait.
func (l *limits) tell(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.told) {
		l.told = until
		l.log.Warn("wait for the forge's rate limit", "until", until)
	}
}

func (l *limits) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

// limited reports whether the forge refused a request for its rate.
func limited(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("Retry-After") != "" || exhausted(resp.Header) || saysRateLimit(resp)
	}
	return false
}

func exhausted(h http.Header) bool {
	return cmp.Or(h.Get("X-RateLimit-Remaining"), h.Get("RateLimit-Remaining")) == "0"
}

func saysRateLimit(resp *http.Response) bool {
	body, err := io.ReadAll(resp.Body) // it is in memory
	if err != nil {
		return false
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	text := strings.ToLower(string(body[:min(len(body), 4<<10)]))
	return strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
}

// limitedUntil reads when requests are allowed again, by this machine's clock, at most longestWait from now; zero when the
// answer does not say. forgeNow is the forge's time, in which it states the reset.
func limitedUntil(resp *http.Response, now, forgeNow time.Time) time.Time {
	const beyond = time.Second // a reset is in whole seconds
	after := func(d time.Duration) time.Time { return now.Add(min(max(0, d), longestWait-beyond) + beyond) }
	if v := resp.Header.Get("Retry-After"); v != "" {
		if s, err := strconv.Atoi(v); err == nil && s >= 0 {
			return now.Add(time.Duration(min(s, int(longestWait/time.Second))) * time.Second)
		}
		if at, err := http.ParseTime(v); err == nil {
			return after(at.Sub(forgeNow))
		}
	}
	if !exhausted(resp.Header) {
		return time.Time{}
	}
	epoch, err := strconv.ParseInt(cmp.Or(resp.Header.Get("X-RateLimit-Reset"), resp.Header.Get("RateLimit-Reset")), 10, 64)
	if err != nil || epoch <= 0 {
		return time.Time{}
	}
	return after(time.Unix(min(epoch, 1<<40), 0).Sub(forgeNow)) // the last seconds overflow
}
