package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/internal/reach"
	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Resolver looks up names, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// policy decides which connections are allowed, and makes them.
type policy struct {
	patterns []pattern
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	patience time.Duration // maximum time for lookup and connection together
}

// denial is a refusal with its reason.
type denial struct {
	reason Reason
	detail string
	err    error // for operators; may be nil
}

func (d *denial) Error() string { return string(d.reason) + ": " + d.detail }

// Unwrap returns the cause.
func (d *denial) Unwrap() error { return d.err }

func deny(reason Reason, format string, args ...any) *denial {
	return &denial{reason: reason, detail: fmt.Sprintf(format, args...)}
}

// permit returns an error unless a rule allows the host and port. allowPrivate reports whether private addresses are
// allowed.
func (p *policy) permit(host string, port int) (allowPrivate bool, err error) {
	allowed, known := false, false
	for _, r := range p.patterns {
		if !r.matchesHost(host) {
			continue
		}
		known = true
		if slices.Contains(r.ports, port) {
			allowed = true
			allowPrivate = allowPrivate || r.private
		}
	}
	switch {
	case allowed:
		return allowPrivate, nil
	case known:
		return false, deny(NotAllowed, "the host is allowed on other ports only")
	}
	return false, deny(NotAllowed, "no rule allows this host")
}

// connect connects to a host if a rule allows it.
func (p *policy) connect(ctx context.Context, host string, port int) (net.Conn, error) {
	allowPrivate, err := p.permit(host, port)
	if err != nil {
		return nil, err
	}
	return p.dialHost(ctx, host, port, allowPrivate)
}

// dialHost looks up a host, checks its addresses, and connects to one of them. It makes only one lookup per connection, so
// that a name cannot change its address after the check.
func (p *policy) dialHost(ctx context.Context, host string, port int, allowPrivate bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.patience, errors.New("no connection in time"))
	defer cancel()
	found, err := p.lookup(ctx, host)
	if err != nil || len(found) == 0 {
		return nil, &denial{NotResolved, "the name has no address", err}
	}
	good := slices.DeleteFunc(found, func(a netip.Addr) bool {
		kind := reach.Of(a)
		return (kind != reach.Public || !allowPrivate && ownAddress(a)) && (kind != reach.Private || !allowPrivate)
	})
	if len(good) == 0 {
		return nil, deny(AddressRefused, "the name resolves to a private, local or reserved address")
	}
	var last error
	for i, a := range good[:min(len(good), 8)] {
		c, err := p.dialAddress(ctx, a, port, len(good)-i)
		if err == nil {
			return c, nil
		}
		last = err
	}
	if errors.Is(last, syscall.ECONNREFUSED) {
		return nil, &denial{NotConnected, "connection refused", last}
	}
	return nil, &denial{NotConnected, "nothing answers there", last}
}

// dialAddress connects to one of several addresses, within its share of the remaining time.
func (p *policy) dialAddress(ctx context.Context, a netip.Addr, port, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		share := time.Until(end) / time.Duration(min(left, 3))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, share, errors.New("no connection in time"))
		defer cancel()
	}
	return p.dial(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(port)))
}

func (p *policy) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := p.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	all := make([]netip.Addr, len(found))
	for i, a := range found {
		all[i] = a.Unmap()
	}
	return all, nil
}

// ownAddress reports whether an address is one of this host: services here may trust every local connection.
func ownAddress(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // refuse if in doubt
	}
	return slices.ContainsFunc(own, func(o net.Addr) bool {
		prefix, err := netip.ParsePrefix(o.String())
		return err == nil && prefix.Addr().Unmap() == a
	})
}

// ownPorts returns the ports of this host's loopback that rules allow. Programs bypass the proxy for loopback.
func (p *policy) ownPorts() (ports []int) {
	for _, r := range p.patterns {
		if r.private && r.host == wire.Loopback {
			ports = append(ports, r.ports...)
		}
	}
	return ports
}

// ports returns all ports of the rules, and 80 and 443, sorted.
func (p *policy) ports() []int {
	all := []int{80, 443}
	for _, r := range p.patterns {
		all = append(all, r.ports...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
