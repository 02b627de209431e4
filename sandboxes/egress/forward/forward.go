// Package forward is the half of package egress that runs in a sandbox. Everything exported is safe for concurrent use.
package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Config configures a Forwarder. Socket or Dial is required.
type Config struct {
	// Socket is the path of the proxy's unix socket, as the forwarder sees it.
	Socket string
	// Dial connects to the proxy where a path is not enough. Nil dials Socket.
	Dial func(ctx context.Context) (net.Conn, error)
	// Listen opens the listener for the address of the HTTP proxy or an endpoint, if commands have no network of their own.
	// The forwarder then serves no DNS and does not touch the loopback interface: programs that ignore proxy variables
	// reach nothing. Nil listens on the addresses themselves.
	Listen func(ctx context.Context, at netip.AddrPort) (net.Listener, error)
}

// Forwarder forwards the connections of programs in a sandbox to the proxy. It holds no secrets and makes no decisions.
type Forwarder struct {
	dial      func(ctx context.Context) (net.Conn, error)
	listenAt  func(ctx context.Context, at netip.AddrPort) (net.Listener, error) // nil: the sandbox has its own network
	names     *names
	hostPorts []int // ports of the host's loopback that are allowed
	dns       net.PacketConn
	ports     []port
}

// port is a listener with the handler of its connections.
type port struct {
	net.Listener
	serve func(ctx context.Context, c net.Conn)
}

// maxForwarded is the maximum number of open connections. The proxy has its own limit.
const maxForwarded = 1024

// New enables the loopback interface if necessary, asks the proxy for its ports, and listens: when it returns,
// commands can start. It must run in the sandbox's network namespace. It needs permission to bind port 53 and other ports
// below 1024 (CAP_NET_BIND_SERVICE in the user namespace that owns the network, or net.ipv4.ip_unprivileged_port_start=0),
// and CAP_NET_ADMIN if loopback is down. Its process may drop all of these afterwards. The caller must call Run or Close.
func New(ctx context.Context, c Config) (*Forwarder, error) {
	f := &Forwarder{dial: c.Dial, listenAt: c.Listen, names: newNames()}
	if f.dial == nil {
		if c.Socket == "" {
			return nil, errors.New("egress forwarder: no socket to forward to")
		}
		f.dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
		}
	}
	if f.listenAt == nil {
		if err := LoopbackUp(); err != nil {
			return nil, fmt.Errorf("egress forwarder: %w", err)
		}
	}
	plan, err := f.requestPlan(ctx)
	if err != nil {
		return nil, fmt.Errorf("egress forwarder: ask the proxy for its plan: %w", err)
	}
	f.hostPorts = plan.Own
	if err := f.listen(ctx, plan); err != nil {
		return nil, errors.Join(fmt.Errorf("egress forwarder: %w", err), f.Close())
	}
	return f, nil
}

// requestPlan requests the proxy's plan.
func (f *Forwarder) requestPlan(ctx context.Context) (wire.Plan, error) {
	c, err := f.connect(ctx, wire.Preface{Verb: wire.VerbPlan})
	if err != nil {
		return wire.Plan{}, err
	}
	defer wire.CloseWith(ctx, c)()
	var got wire.Plan
	if err := json.NewDecoder(io.LimitReader(c, 1<<20)).Decode(&got); err != nil {
		return wire.Plan{}, fmt.Errorf("read it: %w", err)
	}
	if got.Endpoints < 0 || got.Endpoints > wire.MaxEndpoints {
		return wire.Plan{}, fmt.Errorf("it has %d endpoints", got.Endpoints)
	}
	return got, nil
}

// connect opens a connection to the proxy for one purpose. A *refusedError is the proxy's own answer.
func (f *Forwarder) connect(ctx context.Context, p wire.Preface) (net.Conn, error) {
	c, err := f.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err = io.WriteString(c, p.String()); err == nil {
		err = wire.ReadReply(c)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// listen opens all listeners.
func (f *Forwarder) listen(ctx context.Context, p wire.Plan) error {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // useless on loopback, and unknown to the system call filters of some sandboxes
	tcp := func(a netip.AddrPort, serve func(context.Context, net.Conn)) error {
		var l net.Listener
		var err error
		if f.listenAt != nil {
			if l, err = f.listenAt(ctx, a); err != nil {
				return fmt.Errorf("listen for %s: %w", a, err)
			}
		} else if l, err = config.Listen(ctx, "tcp4", a.String()); err != nil {
			return fmt.Errorf("listen inside the sandbox (ports below 1024 need CAP_NET_BIND_SERVICE there, or net.ipv4.ip_unprivileged_port_start=0): %w", err)
		}
		f.ports = append(f.ports, port{l, serve})
		return nil
	}
	if f.listenAt == nil {
		if err := f.listenForNames(ctx, config, tcp, p); err != nil {
			return err
		}
	}
	if err := tcp(wire.EndpointAddr(-1), f.forwardThrough(wire.Preface{Verb: wire.VerbProxy})); err != nil {
		return err
	}
	for i := range p.Endpoints {
		if err := tcp(wire.EndpointAddr(i), f.forwardThrough(wire.Preface{Verb: wire.VerbEndpoint, Arg: strconv.Itoa(i)})); err != nil {
			return err
		}
	}
	return nil
}

// listenForNames opens the listeners for programs that ignore proxy variables: DNS, and the ports of the rules.
func (f *Forwarder) listenForNames(ctx context.Context, config net.ListenConfig,
	tcp func(netip.AddrPort, func(context.Context, net.Conn)) error, p wire.Plan,
) error {
	dns := netip.AddrPortFrom(netip.MustParseAddr(wire.Loopback), dnsPort)
	if err := tcp(dns, func(ctx context.Context, c net.Conn) { serveDNS(ctx, c, f.names) }); err != nil {
		return err
	}
	var err error
	if f.dns, err = config.ListenPacket(ctx, "udp4", dns.String()); err != nil {
		return fmt.Errorf("listen for DNS inside the sandbox: %w", err)
	}
	for _, port := range p.Ports {
		if port < 1 || port > 65535 || port == dnsPort {
			continue // this port is for DNS only
		}
		if err := tcp(netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), f.forwardByName); err != nil {
			return err
		}
	}
	return nil
}

// Run forwards until ctx ends, which is no error. It returns after all its connections are closed and all its goroutines
// have ended.
func (f *Forwarder) Run(ctx context.Context) error {
	var ports, conns sync.WaitGroup
	slots := make(chan struct{}, maxForwarded)
	for _, d := range f.ports {
		ports.Go(func() {
			wire.Accept(ctx, d, slog.New(slog.DiscardHandler), func(c net.Conn) {
				select {
				case slots <- struct{}{}:
					conns.Go(func() {
						defer func() { <-slots }()
						defer wire.CloseWith(ctx, c)()
						d.serve(ctx, c)
					})
				default:
					_ = c.Close()
				}
			})
		})
	}
	if f.dns != nil {
		ports.Go(func() { serveUDP(f.dns, f.names) })
	}
	<-ctx.Done()
	err := f.Close()
	ports.Wait()
	conns.Wait()
	return err
}

// Start makes a Forwarder and runs it until stop is called. stop may be called again.
func Start(c Config) (stop func(), err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := New(ctx, c)
	if err != nil {
		cancel(err)
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // after an error commands have no network, and notice that themselves
	return func() {
		cancel(nil)
		running.Wait()
	}, nil
}

// forwardThrough forwards a connection to the proxy or an endpoint.
func (f *Forwarder) forwardThrough(p wire.Preface) func(context.Context, net.Conn) {
	return func(ctx context.Context, c net.Conn) {
		out, err := f.connect(ctx, p)
		if err != nil {
			return
		}
		join(ctx, c, out)
	}
}

// forwardByName forwards a connection to the address of a name.
func (f *Forwarder) forwardByName(ctx context.Context, c net.Conn) {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	at := local.AddrPort()
	name, known := f.names.name(at.Addr())
	if at.Addr().Unmap() == netip.MustParseAddr(wire.Loopback) && slices.Contains(f.hostPorts, int(at.Port())) {
		name, known = wire.Loopback, true
	}
	if !known {
		return
	}
	out, err := f.connect(ctx, wire.Preface{Verb: wire.VerbConnect, Arg: net.JoinHostPort(name, strconv.Itoa(int(at.Port())))})
	if err == nil {
		join(ctx, c, out)
	} else if refused, ok := errors.AsType[*wire.RefusedError](err); ok {
		sendRefusal(c, int(at.Port()), refused.Reason)
	}
}

// join copies data between a program and the proxy until both are done or the forwarder ends.
func join(ctx context.Context, c, out net.Conn) {
	defer wire.CloseWith(ctx, out)()
	wire.Splice(c, out)
}

// sendRefusal sends the reason of a refusal to a program that ignores proxy variables, in the protocol it probably uses.
func sendRefusal(c net.Conn, port int, reason string) {
	if port != wire.HTTPPort && port != wire.HTTPSPort {
		return
	}
	// Some programs ignore a response that arrives before they have sent a request.
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.Read(make([]byte, 1))
	_ = c.SetDeadline(time.Now().Add(time.Second))
	switch port {
	case wire.HTTPPort:
		body := "ralph's sandbox refuses this connection: " + reason + "\n"
		_, _ = fmt.Fprintf(c, "HTTP/1.1 403 Forbidden\r\n%s: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			wire.ReasonHeader, reason, len(body), body)
	case wire.HTTPSPort:
		_, _ = io.WriteString(c, wire.TLSDenied)
	}
	// Unread data would make the kernel send a reset, and the program would lose the response.
	_ = wire.CloseWrite(c)
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 64<<10))
}

// Close closes the listeners of a forwarder that is not running. It is idempotent.
func (f *Forwarder) Close() error {
	if f.dns != nil {
		_ = f.dns.Close()
	}
	for _, d := range f.ports {
		_ = d.Close()
	}
	return nil
}
