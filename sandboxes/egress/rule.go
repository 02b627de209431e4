package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Rule allows connections to a host.
type Rule struct {
	// Host is a name ("registry.example.com"), all names below a domain ("*.example.com", which does not include
	// example.com), or an IP address. An address is allowed only by a rule with that address. "localhost" means 127.0.0.1.
	Host string
	// Ports lists the allowed ports; empty means 443 and 80.
	Ports []int
	// AllowPrivate allows the name to resolve to this host, and to private and carrier-grade networks. Without it such an
	// address is refused, whatever the name. Link-local addresses and cloud metadata services are always refused.
	AllowPrivate bool
}

// ParseRule parses "HOST", "HOST:PORT", "HOST:PORT,PORT" or "[IPv6]:PORT".
func ParseRule(s string) (Rule, error) {
	r := Rule{Host: s}
	if _, err := netip.ParseAddr(s); err != nil && strings.Contains(s, ":") {
		host, ports, err := net.SplitHostPort(s)
		if err != nil {
			return Rule{}, fmt.Errorf("egress rule %q: use HOST, HOST:PORT or [IPv6]:PORT", clip(s))
		}
		r.Host = host
		for p := range strings.SplitSeq(ports, ",") {
			n, err := strconv.Atoi(p)
			if err != nil {
				return Rule{}, fmt.Errorf("egress rule %q: port %q is not a number", clip(s), clip(p))
			}
			r.Ports = append(r.Ports, n)
		}
	}
	_, err := compile(r)
	return r, err
}

// String returns the rule in the syntax of ParseRule, without AllowPrivate.
func (r Rule) String() string {
	if len(r.Ports) == 0 {
		return r.Host
	}
	ports := make([]string, len(r.Ports))
	for i, p := range r.Ports {
		ports[i] = strconv.Itoa(p)
	}
	return net.JoinHostPort(r.Host, strings.Join(ports, ","))
}

// Allows reports whether the rule allows connections to the name and port. It makes no lookup.
func (r Rule) Allows(host string, port int) bool {
	p, err := compile(r)
	if err != nil {
		return false
	}
	host, err = wire.CanonicalHost(host)
	return err == nil && p.matchesHost(host) && slices.Contains(p.ports, port)
}

// pattern is a compiled Rule.
type pattern struct {
	host       string // lower case, without the star
	subdomains bool   // matches names below host, but not host
	ports      []int
	private    bool
}

// compile returns an error for an invalid rule.
func compile(r Rule) (pattern, error) {
	p := pattern{private: r.AllowPrivate, ports: slices.Clone(r.Ports)}
	host := r.Host
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		host, p.subdomains = rest, true
		if !strings.Contains(strings.TrimSuffix(rest, "."), ".") {
			return p, fmt.Errorf("egress rule %q: it allows a whole top-level domain or everything; name the hosts", clip(r.Host))
		}
	}
	if strings.Contains(host, "*") {
		return p, fmt.Errorf("egress rule %q: a star stands only for the names below a domain, as in *.example.com", clip(r.Host))
	}
	canonical, err := wire.CanonicalHost(host)
	if err != nil {
		return p, fmt.Errorf("egress rule %q: %w", clip(r.Host), err)
	}
	if _, err := netip.ParseAddr(canonical); err == nil && p.subdomains {
		return p, fmt.Errorf("egress rule %q: an address has no names below it", clip(r.Host))
	}
	p.host = localhostAddress(canonical)
	if len(p.ports) == 0 {
		p.ports = []int{443, 80}
	}
	for _, port := range p.ports {
		if port < 1 || port > 65535 {
			return p, fmt.Errorf("egress rule %q: port %d is not between 1 and 65535", clip(r.Host), port)
		}
	}
	return p, nil
}

func (p pattern) matchesHost(host string) bool {
	host = localhostAddress(host)
	if p.subdomains {
		return strings.HasSuffix(host, "."+p.host)
	}
	return host == p.host
}

// localhostAddress converts "localhost" to its address.
func localhostAddress(host string) string {
	if host == "localhost" {
		return wire.Loopback
	}
	return host
}

// splitTarget parses "host:port" of a program's request.
func splitTarget(s string) (host string, port int, err error) {
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("not HOST:PORT")
	}
	port, err = strconv.Atoi(p)
	if err != nil || port < 1 || port > 65535 || len(p) > 5 {
		return "", 0, errors.New("not a port")
	}
	host, err = wire.CanonicalHost(h)
	return host, port, err
}

// clip shortens a text for messages.
func clip(s string) string { return neutral.Shorten(s, 80) }
