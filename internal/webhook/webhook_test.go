package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/webhook"
	"github.com/ralph-pool/ralph/tracker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a handler with the project "shop". The Signature header of a delivery decides whether it is genuine.
type rig struct {
	*webhook.Handler
	wakes atomic.Int64

	mu    sync.Mutex
	count map[string]int // guarded by mu
}

func newRig() *rig {
	r := &rig{count: map[string]int{}}
	r.Handler = webhook.New(webhook.Config{
		Find: func(name string) (webhook.Target, error) {
			switch name {
			case "shop":
				return webhook.Target{Check: check, Wake: func() { r.wakes.Add(1) }}, nil
			case "shut":
				return webhook.Target{}, webhook.ErrNotNow
			}
			return webhook.Target{}, webhook.ErrNoTarget
		},
		Count: func(_, result string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.count[result]++
		},
	})
	return r
}

func check(d tracker.Delivery) (tracker.Notice, error) {
	switch d.Header.Get("Signature") {
	case "good":
		return tracker.Notice{ID: d.Header.Get("Id"), Wake: d.Header.Get("Event") != "star"}, nil
	case "old":
		return tracker.Notice{}, tracker.ErrStale
	case "other":
		return tracker.Notice{}, tracker.ErrOtherProject
	case "":
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	return tracker.Notice{}, tracker.ErrForged
}

func (r *rig) send(method, path, body string, headers ...string) int {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w.Code
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		wakes                    int64
	}{
		{"genuine", "POST", "/hooks/shop", "{}", []string{"Signature: good", "Id: 1"}, 202, 1},
		{"of no matter", "POST", "/hooks/shop", "{}", []string{"Signature: good", "Event: star"}, 202, 0},
		{"forged", "POST", "/hooks/shop", "{}", []string{"Signature: bad"}, 401, 0},
		{"too old", "POST", "/hooks/shop", "{}", []string{"Signature: old"}, 401, 0},
		{"of another project", "POST", "/hooks/shop", "{}", []string{"Signature: other"}, 403, 0},
		{"no delivery", "POST", "/hooks/shop", "{}", nil, 400, 0},
		{"another method", "GET", "/hooks/shop", "", []string{"Signature: good"}, 405, 0},
		{"too large", "POST", "/hooks/shop", strings.Repeat("x", 1<<20+1), []string{"Signature: good"}, 413, 0},
		{"as large as may be", "POST", "/hooks/shop", strings.Repeat("x", 1<<20), []string{"Signature: good"}, 202, 1},
		{"to no project", "POST", "/hooks/none", "{}", []string{"Signature: good"}, 404, 0},
		{"below a project", "POST", "/hooks/shop/x", "{}", []string{"Signature: good"}, 404, 0},
		{"to one that is not open", "POST", "/hooks/shut", "{}", []string{"Signature: good"}, 503, 0},
	} {
		r := newRig()
		if got := r.send(c.method, c.path, c.body, c.headers...); got != c.status || r.wakes.Load() != c.wakes {
			t.Errorf("%s: %d with %d wakes, want %d with %d", c.name, got, r.wakes.Load(), c.status, c.wakes)
		}
		if c.status == http.StatusNotFound && len(r.count) > 0 { // anybody could invent any number of names
			t.Errorf("%s is counted: %v", c.name, r.count)
		}
	}
}

// A delivery counts once, even under another id, with another body, or after others.
func TestReplays(t *testing.T) {
	t.Parallel()
	r := newRig()
	again := func(when string) {
		t.Helper()
		for name, send := range map[string]func() int{
			"the same":     func() int { return r.send("POST", "/hooks/shop", "first", "Signature: good", "Id: 1") },
			"another id":   func() int { return r.send("POST", "/hooks/shop", "first", "Signature: good", "Id: 2") },
			"without id":   func() int { return r.send("POST", "/hooks/shop", "first", "Signature: good") },
			"another body": func() int { return r.send("POST", "/hooks/shop", "second", "Signature: good", "Id: 1") },
		} {
			if got := send(); got != http.StatusConflict {
				t.Errorf("%s, %s: %d", when, name, got)
			}
		}
	}
	if got := r.send("POST", "/hooks/shop", "first", "Signature: bad", "Id: 1"); got != http.StatusUnauthorized {
		t.Fatal(got)
	}
	if got := r.send("POST", "/hooks/shop", "first", "Signature: good", "Id: 1"); got != http.StatusAccepted {
		t.Fatalf("a forged one takes the place of the genuine one: %d", got)
	}
	again("at once")
	for i := range 900 {
		if got := r.send("POST", "/hooks/shop", fmt.Sprint(i), "Signature: good", fmt.Sprint("Id: x", i)); got != http.StatusAccepted {
			t.Fatal(got)
		}
	}
	again("after 900 others")
}

// The number of remembered deliveries is limited.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig()
	for i := range 5000 {
		if got := r.send("POST", "/hooks/shop", fmt.Sprint(i), "Signature: good", fmt.Sprint("Id: x", i)); got != http.StatusAccepted {
			t.Fatal(i, got)
		}
	}
	if got := r.send("POST", "/hooks/shop", "4000", "Signature: good"); got != http.StatusConflict {
		t.Errorf("one of the last thousand: %d", got)
	}
	if got := r.send("POST", "/hooks/shop", "1", "Signature: good"); got != http.StatusAccepted {
		t.Errorf("one of long ago: %d", got)
	}
}

// A thousand genuine deliveries wake the project at once, and once more after the flood.
func TestFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		flood := func(name string) {
			for i := range 1000 {
				if got := r.send("POST", "/hooks/shop", fmt.Sprint(name, i), "Signature: good"); got != http.StatusAccepted {
					t.Fatal(got)
				}
			}
		}
		flood("a")
		if got := r.wakes.Load(); got != 1 {
			t.Errorf("woken %d times at once", got)
		}
		<-time.After(6 * time.Second)
		if got := r.wakes.Load(); got != 2 {
			t.Errorf("woken %d times after the flood", got)
		}
		flood("b") // one second later
		<-time.After(time.Minute)
		if got := r.wakes.Load(); got != 3 {
			t.Errorf("woken %d times after another", got)
		}
		if r.send("POST", "/hooks/shop", "later", "Signature: good"); r.wakes.Load() != 4 {
			t.Errorf("woken %d times after a pause", r.wakes.Load())
		}
	})
}

// slow is a body that arrives when it is released, or fails at its read deadline.
type slow struct {
	*httptest.ResponseRecorder
	begun, free, over chan struct{}
	deadline          time.Time
}

func (s *slow) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	select {
	case <-s.free:
		return 0, io.ErrUnexpectedEOF
	case <-s.over:
		return 0, os.ErrDeadlineExceeded
	}
}

func (s *slow) SetReadDeadline(at time.Time) error {
	if s.deadline = at; time.Until(at) < 0 {
		close(s.over)
	}
	return nil
}

// Clients that send bodies slowly take few slots, for a short time, and lose them to others.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	r := newRig()
	begun, free := make(chan struct{}), make(chan struct{})
	client := func() (*slow, chan struct{}) {
		s, done := &slow{ResponseRecorder: httptest.NewRecorder(), begun: begun, free: free, over: make(chan struct{})}, make(chan struct{})
		go func() {
			defer close(done)
			r.ServeHTTP(s, httptest.NewRequest(http.MethodPost, "/hooks/shop", s))
		}()
		<-begun
		return s, done
	}
	first, ended := client()
	var others []*slow
	var done []chan struct{}
	for range 15 {
		s, d := client()
		others, done = append(others, s), append(done, d)
	}
	if time.Until(first.deadline) > 10*time.Second || time.Until(first.deadline) < 0 {
		t.Errorf("it is read until %s", first.deadline)
	}
	if got := r.send("POST", "/hooks/shop", "{}", "Signature: good"); got != http.StatusAccepted {
		t.Errorf("one more: %d", got)
	}
	<-ended
	if first.Code != http.StatusServiceUnavailable || first.Header().Get("Retry-After") == "" {
		t.Errorf("the slowest: %d", first.Code)
	}
	close(free)
	for n, s := range others {
		if <-done[n]; s.Code != http.StatusBadRequest {
			t.Errorf("another: %d", s.Code)
		}
	}
}
