// Package reach classifies IP addresses and hosts as public, private or forbidden. What an agent may reach depends on it.
// Its functions are safe for concurrent use.
package reach

import (
	"net/netip"
	"sync"
)

// Reach is the class of an address.
type Reach int

// The classes.
const (
	Public  Reach = iota // the internet
	Private              // this host, its networks, or ranges used only in private networks: reachable only if the user allows it
	Never                // always forbidden: link-local and cloud metadata, multicast, reserved
)

// classifiedRange is a range of addresses with its class.
type classifiedRange struct {
	prefix netip.Prefix
	reach  Reach
}

// ranges lists the non-public ranges, after IANA's special-purpose registries; the first match wins.
//
//nolint:gochecknoglobals // read-only table
var ranges = sync.OnceValue(func() (all []classifiedRange) {
	add := func(r Reach, prefixes ...string) {
		for _, p := range prefixes {
			all = append(all, classifiedRange{netip.MustParsePrefix(p), r})
		}
	}
	// Metadata and host services of clouds, within ranges that are otherwise private or public.
	add(Never, "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128")
	add(Private, "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
	// Reserved for documentation and benchmarks, but used by some company networks, VPNs and local proxies.
	add(Private, "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24")
	add(Never, "0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3",
		"2001::/23", // Teredo and other protocols
		"2001:db8::/32", "3fff::/20")
	return all
})

// Of returns the class of an address. An IPv6 address that embeds an IPv4 address has the class of that address.
func Of(a netip.Addr) Reach {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return Never
	}
	if inner, ok := embedded(a); ok {
		return Of(inner)
	}
	for _, b := range ranges() {
		if b.prefix.Contains(a) {
			return b.reach
		}
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) { // not allocated for the internet
		return Never
	}
	return Public
}

// embedded returns the IPv4 address embedded in an IPv6 address: NAT64, 6to4 and the old compatible form.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() || a == netip.IPv6Loopback() {
		return netip.Addr{}, false
	}
	b := a.As16()
	var at int
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a):
		at = 12
	case netip.MustParsePrefix("2002::/16").Contains(a):
		at = 2
	default:
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}
