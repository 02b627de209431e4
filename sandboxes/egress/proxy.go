package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Config configures a Proxy. The zero value allows nothing.
type Config struct {
	// Allow is the allow-list. All other hosts are refused.
	Allow []Rule
	// Endpoints are the services to whose requests ralph adds a credential; the sandbox reaches them over loopback.
	Endpoints []Endpoint
	Limits    Limits
	// Resolver looks up names; nil means net.DefaultResolver.
	Resolver Resolver
	// Dial connects to a checked address; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots are the certificate authorities for the endpoints' services; nil means those of the system.
	Roots *x509.CertPool
	// Observe receives refusals, one at a time and in order. It must not block or call the proxy.
	Observe func(Event)
	// Log is for operators; default silent. It never gets a secret.
	Log *slog.Logger
}

// Proxy is the egress proxy of one sandbox. It is safe for concurrent use.
type Proxy struct {
	policy    policy
	limits    Limits
	endpoints []*endpoint
	plain     *http.Transport // for http:// requests
	record    record
	log       *slog.Logger

	ctx            context.Context // context of all connections; ended by Close
	cancel         context.CancelCauseFunc
	slots          chan struct{}  // one for each open connection from the sandbox
	largeBodySlots chan struct{}  // one for each large body in memory
	bytesLeft      atomic.Int64   // remaining bytes of the run
	work           sync.WaitGroup // all goroutines and connections that Close waits for

	http    *http.Server
	handoff *handoff // passes connections to http

	mu     sync.Mutex
	listen net.Listener // guarded by mu
}

var errClosed = errors.New("egress proxy is closed")

// New returns a proxy that does not listen yet. The error names every invalid rule and endpoint.
func New(c Config) (*Proxy, error) {
	errs := []error{c.Limits.check()}
	limits := c.Limits.withDefaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{
		limits:         limits,
		largeBodySlots: make(chan struct{}, largeBodies),
		record:         record{observe: c.Observe, log: c.Log, seen: map[refusal]*Event{}},
		log:            c.Log,
		policy:         policy{resolver: c.Resolver, dial: c.Dial, patience: limits.Dial},
	}
	if p.policy.resolver == nil {
		p.policy.resolver = net.DefaultResolver
	}
	if p.policy.dial == nil {
		p.policy.dial = (&net.Dialer{}).DialContext
	}
	for _, r := range c.Allow {
		compiled, err := compile(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.policy.patterns = append(p.policy.patterns, compiled)
	}
	if len(c.Endpoints) > wire.MaxEndpoints {
		errs = append(errs, fmt.Errorf("egress: %d endpoints are more than %d", len(c.Endpoints), wire.MaxEndpoints))
	}
	names := map[string]bool{}
	for _, e := range c.Endpoints {
		made, err := newEndpoint(e, &p.policy, c.Roots)
		if err == nil && names[e.Name] {
			err = fmt.Errorf("egress endpoint %q: two have this name", clip(e.Name))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names[e.Name] = true
		p.endpoints = append(p.endpoints, made)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.bytesLeft.Store(limits.Bytes)
	p.slots = make(chan struct{}, limits.Connections)
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.plain = p.plainTransport()
	p.serveHTTP()
	return p, nil
}

// URL returns the URL of the named endpoint inside the sandbox, or "".
func (p *Proxy) URL(endpoint string) string {
	for i, e := range p.endpoints {
		if e.Name == endpoint {
			return "http://" + wire.EndpointAddr(i).String()
		}
	}
	return ""
}

// Listen listens on a socket (mode 0600) in dir, until Close. It creates dir (mode 0700) if missing, and replaces a socket
// that a crash has left. A provider that runs commands as another user must chown the socket. The path must be short:
// systems allow about 100 bytes.
func (p *Proxy) Listen(dir string) (socket string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the egress folder: %w", err)
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return "", fmt.Errorf("look at the egress folder: %w", err)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("egress folder %s is open to other users; run chmod 700 %s", dir, dir)
	}
	socket = filepath.Join(dir, "egress.sock")
	if info, err := os.Lstat(socket); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(socket); err != nil {
			return "", fmt.Errorf("remove the egress socket of an earlier run: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return "", errClosed
	case p.listen != nil:
		return "", errors.New("egress proxy is listening already; make one per run")
	}
	l, err := (&net.ListenConfig{}).Listen(p.ctx, "unix", socket)
	if err != nil {
		if len(socket) > 100 {
			return "", fmt.Errorf("listen on the egress socket: its path has %d bytes, which is too long; use a shorter folder: %w", len(socket), err)
		}
		return "", fmt.Errorf("listen on the egress socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("close the egress socket to others: %w", err), l.Close())
	}
	p.listen = l
	p.work.Go(func() { wire.Accept(p.ctx, l, p.log, p.admit) })
	return socket, nil
}

// Close ends all connections, removes the socket, and returns when all goroutines of the proxy have ended. It is
// idempotent.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.cancel(errClosed) // closes the connections
	l := p.listen
	p.listen = nil
	p.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	_ = p.http.Close() // its listener is the handoff, and its connections are closed
	p.work.Wait()
	p.plain.CloseIdleConnections()
	for _, e := range p.endpoints {
		e.transport.CloseIdleConnections()
	}
	return err
}

// refuse counts a refusal and returns its reason. An error other than a denial means that the connection failed.
func (p *Proxy) refuse(host string, port int, err error) Reason {
	d, ok := errors.AsType[*denial](err)
	if !ok {
		d = deny(NotConnected, "the connection ended")
	}
	p.record.add(refusal{d.reason, host, port}, d.detail)
	p.log.Debug("egress refusal", "reason", string(d.reason), "host", host, "port", port, "cause", d.err)
	return d.reason
}
