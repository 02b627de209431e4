package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/internal/webhook"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// A delivery wakes its project, which would not poll for an hour. It needs no token, but passes the guard's other checks.
func TestDeliveryWakes(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	var s server
	s = start(t, func(c *web.Config) {
		c.Token = "0123456789abcdef"
		c.Hooks = webhook.New(webhook.Config{Count: c.Metrics.Webhook, Find: func(name string) (webhook.Target, error) {
			return webhook.Target{Wake: func() { s.service.Wake(name) }, Check: func(tracker.Delivery) (tracker.Notice, error) {
				return tracker.Notice{Wake: true}, nil
			}}, nil
		}})
	}, p)
	s.watch.Until(t, "shop", journal.EventEnded, 1)
	servicetest.Eventually(t, func() bool {
		status, err := s.service.Status("shop")
		return err == nil && status.State == service.Waiting
	})
	p.Issue("later", "Later")
	for _, c := range []struct {
		header string
		want   int
	}{
		{"Host: evil.example", http.StatusMisdirectedRequest},
		{"Origin: http://evil.example", http.StatusForbidden},
		{"X: y", http.StatusAccepted},
	} {
		if res := s.do(http.MethodPost, "/hooks/shop", c.header); res.StatusCode != c.want {
			t.Errorf("%s: %s", c.header, res.Status)
		}
	}
	if e := s.watch.Until(t, "shop", journal.EventEnded, 2); e.Key != "later" {
		t.Errorf("%+v", e)
	}
	text, err := io.ReadAll(s.do(http.MethodGet, "/metrics", "Authorization: Bearer 0123456789abcdef").Body)
	if want := `ralph_webhooks_total{project="shop",result="accepted"} 1`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("no %s, %v", want, err)
	}
}

// pipes is a listener of in-process connections, which work with the test's fake time.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.ended)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "pipe"} }

// inBubble starts a server without projects in the test's bubble and returns a function that connects to it.
func inBubble(t *testing.T) (dial func() net.Conn) {
	l := pipes{make(chan net.Conn), make(chan struct{})}
	ended := make(chan error, 1)
	ctx, cancel := withCancel(t)
	go func() { ended <- web.Serve(ctx, l, web.Config{Service: service.New(service.Config{})}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		return ours
	}
}

// A client that does not complete its header or body in time is disconnected.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent  string
		limit time.Duration
	}{
		"nothing": {"", 5 * time.Second},
		"header":  {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", 5 * time.Second},
		"body":    {"POST /v1/projects/x/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx", 30 * time.Second},
		"idle":    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := inBubble(t)()
				defer conn.Close()
				begun := time.Now()
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, conn) // until the server closes it
				if took := time.Since(begun); took > c.limit+time.Second {
					t.Errorf("dropped after %s, want %s", took, c.limit)
				}
			})
		})
	}
}

// Idle connections do not keep others out: the oldest is closed.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := inBubble(t)
		var open []net.Conn
		for range 512 {
			open = append(open, dial())
		}
		synctest.Wait()
		conn := dial()
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 503") { // not ready, because nothing is started
			t.Errorf("%q, %v", line, err)
		}
		if _, err := open[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the oldest connection: %v", err)
		}
		for _, c := range append(open, conn) {
			_ = c.Close()
		}
	})
}

// An overlong body is not read to its end.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	s := start(t, nil, servicetest.New(t, "shop", 0))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /v1/projects/shop/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", int64(1)<<40); err != nil {
		t.Fatal(err)
	}
	part, sent := make([]byte, 64<<10), 0
	for err == nil && sent < 64<<20 {
		var n int
		n, err = conn.Write(part)
		sent += n
	}
	if err == nil {
		t.Errorf("%d bytes were taken", sent)
	}
	if errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func withCancel(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() { cancel(nil) }
}

// lookups is a journal that allows a limited number of calls and counts them.
type lookups struct {
	journal.Store
	left atomic.Int32
	wide atomic.Int32 // calls for one run without a limit, which wait for the writer
}

func (l *lookups) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	if q.Run != "" && q.Limit == 0 {
		l.wide.Add(1)
	}
	if l.left.Add(-1) < 0 {
		return nil, errors.New("the journal is busy")
	}
	return l.Store.Find(ctx, q)
}

// A stream whose run cannot be looked up is closed without "end": only ended runs have one.
func TestStreamOfALookupThatFails(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 0)
	r := journal.Record{Run: journal.Run{ID: "r-1", Key: "fix", Dir: t.TempDir(), Started: time.Now()}}
	if err := p.Store.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s := start(t, nil, p)
	var parts *service.Parts
	servicetest.Eventually(t, func() (open bool) {
		var err error
		parts, err = s.service.Parts("shop")
		return err == nil
	})
	store := &lookups{Store: parts.Store}
	parts.Store = store
	store.left.Store(1) // finds the run; the stream's own call fails
	if text, err := io.ReadAll(s.do(http.MethodGet, "/v1/projects/shop/runs/r-1/events").Body); err != nil || strings.Contains(string(text), "event: end") {
		t.Errorf("of a run that is on: %q, %v", text, err)
	}
	r.Ended = time.Now()
	if err := p.Store.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	store.left.Store(9)
	if text, err := io.ReadAll(s.do(http.MethodGet, "/v1/projects/shop/runs/r-1/events").Body); err != nil || !strings.Contains(string(text), "event: end") {
		t.Errorf("of a run that has ended: %q, %v", text, err)
	}
	if res := s.do(http.MethodGet, "/v1/projects/shop/runs/r-1"); res.StatusCode != http.StatusOK || store.wide.Load() != 0 {
		t.Errorf("%s, %d lookups of one run have no limit", res.Status, store.wide.Load())
	}
}
