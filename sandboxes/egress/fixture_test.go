package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// internet is a resolver and a dialer. Names have public addresses, behind which are servers on loopback.
type internet struct {
	mu      sync.Mutex
	names   map[string][]string // guarded by mu; current addresses by name
	servers map[string]string   // guarded by mu; real address by "address:port"
	lookups []string            // guarded by mu
	dialled []string            // guarded by mu
}

func newInternet() *internet {
	return &internet{names: map[string][]string{}, servers: map[string]string{}}
}

// host adds a server to the internet.
func (i *internet) host(name, address string, port int, real string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Contains(i.names[name], address) {
		i.names[name] = append(i.names[name], address)
	}
	i.servers[net.JoinHostPort(address, fmt.Sprint(port))] = real
}

func (i *internet) point(name string, addresses ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names[name] = addresses
}

func (i *internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lookups = append(i.lookups, host)
	var all []netip.Addr
	for _, a := range i.names[host] {
		all = append(all, netip.MustParseAddr(a))
	}
	if all == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return all, nil
}

func (i *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	i.mu.Lock()
	real := i.servers[address]
	i.dialled = append(i.dialled, address)
	i.mu.Unlock()
	if real == "" {
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	return (&net.Dialer{}).DialContext(ctx, network, real)
}

func (i *internet) seen() (lookups, dialled []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.lookups), slices.Clone(i.dialled)
}

// rig is a proxy on a real socket that records refusals.
type rig struct {
	*egress.Proxy
	socket string

	mu     sync.Mutex
	events []egress.Event // guarded by mu
	bytes  bytes.Buffer   // guarded by mu; all bytes that the sandbox has received
}

func newRig(t testing.TB, c egress.Config) *rig {
	t.Helper()
	r := &rig{}
	c.Observe = func(e egress.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}
	var err error
	if r.Proxy, err = egress.New(c); err != nil {
		t.Fatal(err)
	}
	if r.socket, err = r.Listen(filepath.Join(t.TempDir(), "e")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// refused returns the refusals so far, as "reason host:port".
func (r *rig) refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.events {
		all = append(all, fmt.Sprintf("%s %s:%d", e.Reason, e.Host, e.Port))
	}
	return all
}

func (r *rig) wantRefused(t *testing.T, want ...string) {
	t.Helper()
	if got := r.refused(); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

// watched is a connection of the sandbox that records incoming bytes.
type watched struct {
	*net.UnixConn
	r *rig
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.UnixConn.Read(b)
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.bytes.Write(b[:n])
	return n, err
}

// open connects to the socket as the forwarder does. The error is the proxy's "no".
func (r *rig) open(t testing.TB, line string) (net.Conn, error) {
	t.Helper()
	raw, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	c := &watched{raw.(*net.UnixConn), r}
	_, _ = io.WriteString(c, "ralph-egress/1 "+line+"\n") // fails if the proxy has refused already
	var reply []byte
	for b := make([]byte, 1); !bytes.HasSuffix(reply, []byte("\n")); reply = append(reply, b...) {
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, fmt.Errorf("after %q: %w", reply, err)
		}
	}
	if string(reply) != "ok\n" {
		return nil, errors.New(strings.TrimSpace(string(reply)))
	}
	return c, nil
}

// client returns an HTTP client in the sandbox whose connections begin with this line.
func (r *rig) client(t testing.TB, line string, roots *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return r.open(t, line) },
		Proxy: func(*http.Request) (*url.URL, error) {
			if line != "proxy" {
				return nil, nil
			}
			return url.Parse("http://127.0.0.1:15380")
		},
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// service starts an HTTPS server with HTTP/2 for the name example.com.
func service(t testing.TB, h http.Handler) (address string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.Listener.Addr().String(), roots
}

// say starts a server that sends a greeting and then echoes its input.
func say(t testing.TB, greeting string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, greeting)
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

func get(t *testing.T, c *http.Client, address string) (status int, body string) {
	t.Helper()
	res, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// line reads one line, without its end.
func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line: %v (so far %q)", err, s)
	}
	return strings.TrimSuffix(s, "\n")
}
