package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// site returns a rig with one allowed host that greets and echoes, on ports 22 and 443.
func site(t testing.TB, limits egress.Limits, greeting string) *rig {
	t.Helper()
	net := newInternet()
	address := say(t, greeting)
	net.host("example.com", somewhere, 22, address)
	net.host("example.com", somewhere, 443, address)
	return newRig(t, egress.Config{
		Allow:  []egress.Rule{{Host: "example.com", Ports: []int{22, 80, 443}}},
		Limits: limits, Resolver: net, Dial: net.dial,
	})
}

// A connection ends whatever a program has begun and does not continue.
func TestSlowness(t *testing.T) {
	t.Parallel()
	soon := 20 * time.Millisecond
	for name, tt := range map[string]struct {
		limits egress.Limits
		line   string // "" sends only raw
		raw    string
	}{
		"half a first line":   {egress.Limits{Handshake: soon}, "", "ralph-egress/1 pl"},
		"no first line":       {egress.Limits{Handshake: soon}, "", ""},
		"half a request":      {egress.Limits{Handshake: soon}, "proxy", "CONNECT example.com:443 HT"},
		"half a hello":        {egress.Limits{Handshake: soon}, "connect example.com:443", "\x16\x03\x01\x02\x00\x01"},
		"a silent tunnel":     {egress.Limits{Idle: soon}, "connect example.com:22", ""},
		"a silent TLS tunnel": {egress.Limits{Idle: soon}, "connect example.com:443", ""},
		"a silent proxy":      {egress.Limits{Idle: soon}, "proxy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := site(t, tt.limits, "")
			c, err := net.Dial("unix", r.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			first := tt.raw
			if tt.line != "" {
				first = "ralph-egress/1 " + tt.line + "\n" + tt.raw
			}
			_, _ = io.WriteString(c, first) // fails if the proxy has closed the connection already
			said, _ := io.ReadAll(c)        // returns when the proxy has closed the connection
			if len(said) > 0 && !strings.HasPrefix(string(said), "ok\n") {
				t.Errorf("the proxy says %q", said)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	r := site(t, egress.Limits{Connections: 2}, "hello\n")
	var open []net.Conn
	for range 2 {
		c, err := r.open(t, "connect example.com:22")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if _, err := r.open(t, "connect example.com:22"); err == nil || !strings.Contains(err.Error(), "too-many") {
		t.Errorf("a third one: %v", err)
	}
	r.wantRefused(t, "too-many :0")
	_ = open[0].Close()
	for { // until the proxy has noticed the Close
		if _, err := r.open(t, "connect example.com:22"); err == nil {
			break
		}
	}
}

func TestBytesAreBounded(t *testing.T) {
	t.Parallel()
	r := site(t, egress.Limits{Bytes: 100_000}, strings.Repeat("x", 200_000))
	c, err := r.open(t, "connect example.com:22")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := io.Copy(io.Discard, c); n > 150_000 {
		t.Errorf("%d bytes came through", n)
	}
	if c, err := r.open(t, "plan"); err == nil {
		if plan, _ := io.ReadAll(c); len(plan) > 0 {
			t.Errorf("after that still %q", plan)
		}
	}
	if got := r.refused(); len(got) == 0 || got[0] != "too-much :0" {
		t.Errorf("refused %q", got)
	}
}

// A refusal is reported at its 1st, 10th and 100th time, and made-up hosts do not exhaust memory.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, egress.Config{})
	for range 25 {
		_, _ = r.open(t, "connect one.example.com:443")
	}
	r.wantRefused(t, "not-allowed one.example.com:443", "not-allowed one.example.com:443")
	for i := range 300 {
		_, _ = r.open(t, fmt.Sprintf("connect host%d.example.com:443", i))
	}
	list, more := r.Refusals()
	if len(list) != 200 || more != 101 || list[0].Count != 25 || list[0].Host != "one.example.com" {
		t.Errorf("%d in the list and %d more, first %+v", len(list), more, list[0])
	}
	if n := len(r.refused()); n != 201 {
		t.Errorf("%d events", n)
	}
}

// Close ends all connections and requests, and leaves nothing.
func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	stalled := make(chan struct{})
	r, _ := api(t, nil, egress.Limits{}, func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(stalled)
		<-q.Context().Done()
	})
	q := "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	asked, err := r.open(t, "endpoint 0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(asked, q); err != nil {
		t.Fatal(err)
	}
	<-stalled
	open := []net.Conn{asked}
	other := site(t, egress.Limits{}, "hello\n")
	for _, line := range []string{"connect example.com:22", "connect example.com:443", "connect example.com:80", "proxy"} {
		c, err := other.open(t, line)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if got := line(t, bufio.NewReader(open[1])); got != "hello" {
		t.Errorf("got %q", got)
	}
	for _, r := range []*rig{r, other} {
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range open {
		_, _ = io.Copy(io.Discard, c)
	}
	if _, err := net.Dial("unix", r.socket); err == nil {
		t.Error("the socket is open after Close")
	}
	if slices.Contains(r.refused(), "too-many :0") {
		t.Error("connections are left")
	}
}

// A program that hangs up causes no refusal, and its request to the service ends.
func TestProgramGoesAway(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	r, _ := api(t, nil, egress.Limits{}, func(_ http.ResponseWriter, q *http.Request) {
		close(arrived)
		<-q.Context().Done()
		close(gone)
	})
	c, err := r.open(t, "endpoint 0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-arrived
	_ = c.Close()
	<-gone
	_ = r.Close()
	r.wantRefused(t)
}
