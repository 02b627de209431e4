package forge

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// secondaryWait is how long to wait when a forge says "slow down" but not for how long.
const secondaryWait = time.Minute

// limits waits for rate limits, the forge's hourly one and the one against bursts, instead of failing on them. A
// request that was refused for its rate was not done, so that even a write may be made again.
type limits struct {
	next  http.RoundTripper
	clock Clock
	skew  *skew
	max   time.Duration
	log   zerolog.Logger

	mu    sync.Mutex
	until time.Time // no request before; guarded by mu
}

func (l *limits) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline := l.clock.Now().Add(l.max)
	blind := secondaryWait
	for {
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
		now := l.clock.Now()
		switch until := limitedUntil(resp, now, l.skew.now()); {
		case !limited(resp):
			// The last one within the limit went through: the next would be refused, and forges punish who asks on.
			if until.After(now) && resp.StatusCode < 400 && exhausted(resp.Header) {
				l.hold(until)
			}
			return resp, nil
		case until.IsZero():
			l.hold(now.Add(blind))
			blind *= 2
		default:
			l.hold(until)
		}
	}
}

// wait returns when requests may be made again, or says until when not.
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
		l.log.Info().Time("until", until).Msg("wait for the forge's rate limit")
		if err := l.clock.Sleep(r.Context(), until.Sub(now)); err != nil {
			return err
		}
	}
}

func (l *limits) hold(until time.Time) {
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
	return firstHeader(h, "X-RateLimit-Remaining", "RateLimit-Remaining") == "0"
}

func saysRateLimit(resp *http.Response) bool {
	text := strings.ToLower(peek(resp))
	return strings.Contains(text, "rate limit") || strings.Contains(text, "abuse detection")
}

// limitedUntil reads when requests are welcome again, by this machine's clock; zero when the answer does not say.
// forgeNow is the time by the forge's clock, by which it states the reset.
func limitedUntil(resp *http.Response, now, forgeNow time.Time) time.Time {
	const beyond = time.Second // a reset is in whole seconds
	if v := resp.Header.Get("Retry-After"); v != "" {
		if s, err := strconv.Atoi(v); err == nil && s >= 0 {
			return now.Add(time.Duration(min(s, 1<<30)) * time.Second)
		}
		if at, err := http.ParseTime(v); err == nil {
			return now.Add(at.Sub(forgeNow) + beyond)
		}
	}
	if !exhausted(resp.Header) {
		return time.Time{}
	}
	epoch, err := strconv.ParseInt(firstHeader(resp.Header, "X-RateLimit-Reset", "RateLimit-Reset"), 10, 64)
	if err != nil || epoch <= 0 {
		return time.Time{}
	}
	return now.Add(max(0, time.Unix(epoch, 0).Sub(forgeNow)) + beyond)
}

func firstHeader(h http.Header, names ...string) string {
	for _, n := range names {
		if v := h.Get(n); v != "" {
			return v
		}
	}
	return ""
}
