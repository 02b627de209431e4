package transport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// TestLimitsAreWaitedFor: requests, also writes, wait for a rate limit, and no longer than the forge says.
func TestLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	start := forgetest.NewClock().Now()
	reset := strconv.FormatInt(start.Add(90*time.Second).Unix(), 10)
	for name, c := range map[string]struct {
		status int
		head   map[string]string
		body   string
		want   time.Duration
	}{
		"seconds":         {403, map[string]string{"Retry-After": "7"}, `{}`, 7 * time.Second},
		"date":            {429, map[string]string{"Retry-After": start.Add(20 * time.Second).Format(http.TimeFormat)}, `{}`, 21 * time.Second},
		"reset":           {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `{}`, 91 * time.Second},
		"reset, other":    {429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": reset}, `{}`, 91 * time.Second},
		"only said":       {403, nil, `{"message":"You have exceeded a secondary rate limit"}`, time.Minute},
		"nothing said":    {429, nil, ``, time.Minute},
		"nonsense said":   {429, map[string]string{"Retry-After": "soon"}, ``, time.Minute},
		"reset is past":   {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, `{}`, time.Second},
		"negative":        {429, map[string]string{"Retry-After": "-5"}, ``, time.Minute},
		"last one passed": {200, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, `{}`, 91 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, Config{}, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n > 1 {
					writeJSON(w, 200, `"done"`)
					return
				}
				for k, v := range c.head {
					w.Header().Set(k, v)
				}
				writeJSON(w, c.status, c.body)
			})
			for g.requestCount() < 2 {
				if status, _, err := g.do(WithReadOnly(t.Context()), http.MethodPost, "/x", "{}"); err != nil || status != 200 {
					t.Fatalf("%d, %v", status, err)
				}
			}
			if got := g.clock.Slept(); got != c.want {
				t.Errorf("waited %v, want %v", got, c.want)
			}
		})
	}
}

func TestForbiddenIsNoLimit(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "4999")
		writeJSON(w, 403, `{"message":"Resource not accessible"}`)
	})
	if status, _, err := g.get("/x"); err != nil || status != 403 || g.requestCount() != 1 || g.clock.Slept() != 0 {
		t.Errorf("%d, %v, %d requests, waited %v", status, err, g.requestCount(), g.clock.Slept())
	}
	if left := g.CallsLeft(); len(left) != 1 || left[""] != 4999 {
		t.Errorf("left %v", left)
	}
}

// TestLimitBeyondTheBound: a limit longer than MaxWait is an immediate error with its end, without another request.
func TestLimitBeyondTheBound(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{MaxWait: time.Minute}, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		writeJSON(w, 429, `{}`)
	})
	for range 3 {
		_, _, err := g.get("/x")
		var away *tracker.UnavailableError
		if !errors.As(Explain(t.Context(), nil, "", err), &away) || !away.Until.Equal(g.clock.Now().Add(time.Hour)) {
			t.Fatalf("%v", err)
		}
	}
	if g.requestCount() != 1 || g.clock.Slept() != 0 {
		t.Errorf("%d requests, waited %v", g.requestCount(), g.clock.Slept())
	}
}

// TestEndlessLimit: ralph gives up on a forge that keeps refusing, within MaxWait.
func TestEndlessLimit(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, _ *http.Request) { writeJSON(w, 429, `{}`) })
	if _, _, err := g.get("/x"); err == nil || g.clock.Slept() > 15*time.Minute || g.requestCount() > 6 {
		t.Errorf("%v after %d requests and %v", err, g.requestCount(), g.clock.Slept())
	}
}

// TestLimitWithoutUsableTime: whatever time a refusal names, ralph makes only a few further tries, and waits longer before each.
func TestLimitWithoutUsableTime(t *testing.T) {
	t.Parallel()
	far := "Fri, 31 Dec 9999 23:59:59 GMT"
	reset := func(at string) map[string]string {
		return map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": at}
	}
	for name, head := range map[string]map[string]string{
		"at once":             {"Retry-After": "0"},
		"date in the past":    {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"},
		"date in year 9999":   {"Retry-After": far},
		"many seconds":        {"Retry-After": "9223372036854775807"},
		"more than there are": {"Retry-After": "99999999999999999999"},
		"reset is past":       reset("1"),
		"reset before time":   reset("-5"),
		"reset in year 9999":  reset("253402300799"),
		"last reset":          reset("9223372036854775807"),
		"clock in year 9999":  {"Retry-After": "Thu, 01 Jan 2026 00:00:20 GMT", "Date": far},
		"clock in 1700":       {"Retry-After": far, "Date": "Fri, 01 Jan 1700 00:00:00 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, Config{MaxWait: time.Minute}, func(n int, w http.ResponseWriter, _ *http.Request) {
				for k, v := range head {
					w.Header().Set(k, v)
				}
				if n == 20 {
					writeJSON(w, 200, `{}`)
					return
				}
				writeJSON(w, 429, `{}`)
			})
			began := g.clock.Now()
			_, _, err := g.get("/x")
			f, ok := errors.AsType[*Failure](err)
			if !ok || f.Action != Wait || !f.Until.After(g.clock.Now()) || f.Until.Sub(began) > longestWait+time.Minute {
				t.Errorf("%v", err)
			}
			if g.requestCount() > 6 || g.clock.Slept() > time.Minute || g.requestCount() > 1 && g.clock.Slept() < time.Duration(g.requestCount()-1)*time.Second {
				t.Errorf("%d requests in %v", g.requestCount(), g.clock.Slept())
			}
		})
	}
}

func TestWaitIsCancelled(t *testing.T) {
	t.Parallel()
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	g := newRig(t, Config{Clock: realClock{}, MaxWait: 24 * time.Hour}, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		writeJSON(w, 429, `{}`)
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	})
	if _, _, err := g.do(ctx, http.MethodGet, "/x", ""); !errors.Is(err, cause) || !errors.Is(Explain(ctx, nil, "", err), cause) {
		t.Errorf("%v, want the cause", err)
	}
}

func FuzzLimitedUntil(f *testing.F) {
	f.Add("7", "0", "1767225600")
	f.Add("Wed, 21 Oct 2026 07:28:00 GMT", "", "")
	f.Add("99999999999999999999", "0", "9223372036854775807")
	now := forgetest.NewClock().Now()
	f.Fuzz(func(t *testing.T, after, remaining, reset string) {
		h := http.Header{"Retry-After": {after}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset}}
		until := limitedUntil(&http.Response{StatusCode: http.StatusTooManyRequests, Header: h}, now, now)
		if !until.IsZero() && (until.Before(now) || until.After(now.Add(longestWait))) {
			t.Fatalf("until %v", until)
		}
	})
}

// A wait is reported once, with its end: in the log for all requests, and to each caller that registered with WithWait.
func TestWaitIsTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := newRig(t, Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "40")
			writeJSON(w, 429, `{}`)
			return
		}
		writeJSON(w, 200, `"done"`)
	})
	want := g.clock.Now().Add(40 * time.Second)
	var waits []time.Time
	ctx := tracker.WithWait(t.Context(), func(until time.Time) { waits = append(waits, until) })
	for range 2 {
		if status, _, err := g.do(WithReadOnly(ctx), http.MethodPost, "/x", "{}"); err != nil || status != 200 {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if len(waits) != 1 || !waits[0].Equal(want) {
		t.Errorf("told %v, want %v", waits, want)
	}
	if text := log.String(); strings.Count(text, "wait for the forge's rate limit") != 1 || !strings.Contains(text, "until="+want.Format("2006-01-02T15:04:05")) {
		t.Errorf("logged %q", text)
	}
}
