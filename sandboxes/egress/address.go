package egress

import "net/netip"

// reach says what kind of place an address is.
type reach int

const (
	public  reach = iota // the internet
	private              // this host or its own networks: only for a rule with AllowPrivate
	never                // no service anybody means: link-local and cloud metadata, multicast, reserved
)

// block is a range of addresses and what they are.
type block struct {
	prefix string
	reach  reach
}

// blocks are the ranges that are not the internet, after IANA's special-purpose registries; the first match counts.
func blocks() []block {
	return []block{
		// Metadata services of clouds that stand in ranges which are otherwise private.
		{"100.100.100.200/32", never},
		{"fd00:ec2::254/128", never},
		{"fd20:ce::254/128", never},

		{"10.0.0.0/8", private},
		{"100.64.0.0/10", private},
		{"127.0.0.0/8", private},
		{"172.16.0.0/12", private},
		{"192.168.0.0/16", private},
		{"::1/128", private},
		{"fc00::/7", private},

		{"0.0.0.0/8", never},
		{"169.254.0.0/16", never},
		{"192.0.0.0/24", never},
		{"192.0.2.0/24", never},
		{"192.88.99.0/24", never},
		{"198.18.0.0/15", never},
		{"198.51.100.0/24", never},
		{"203.0.113.0/24", never},
		{"224.0.0.0/3", never},
		{"2001::/23", never}, // Teredo and other protocols' own
		{"2001:db8::/32", never},
		{"3fff::/20", never},
	}
}

// judged is blocks, parsed.
type judged struct {
	prefix netip.Prefix
	reach  reach
}

func parseBlocks() []judged {
	var all []judged
	for _, b := range blocks() {
		all = append(all, judged{netip.MustParsePrefix(b.prefix), b.reach})
	}
	return all
}

// classify says what kind of place an address is. An IPv6 address that stands for an IPv4 one is what that one is.
func classify(all []judged, a netip.Addr) reach {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return never
	}
	if inner, ok := embedded(a); ok {
		return classify(all, inner)
	}
	for _, b := range all {
		if b.prefix.Contains(a) {
			return b.reach
		}
	}
	if a.Is6() && !globalUnicast().Contains(a) {
		return never
	}
	return public
}

// globalUnicast is all of IPv6 that is in use for the internet.
func globalUnicast() netip.Prefix { return netip.MustParsePrefix("2000::/3") }

// embedded returns the IPv4 address that routers make of an IPv6 one: NAT64, 6to4 and the old compatible form.
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
