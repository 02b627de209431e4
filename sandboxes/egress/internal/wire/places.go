package wire

import "net/netip"

// What programs in a sandbox see. It is the same in all sandboxes, because each has its own network. So the environment of
// commands is known before the sandbox exists.
const (
	proxyPort    = 15380       // the HTTP proxy; the next ports are those of endpoints
	MaxEndpoints = 64          // endpoints of one proxy
	Loopback     = "127.0.0.1" // address of proxy, endpoints and DNS
	HTTPPort     = 80
	HTTPSPort    = 443
)

// EndpointAddr returns the address of the i-th endpoint in the sandbox; -1 is the HTTP proxy.
func EndpointAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(Loopback), uint16(proxyPort+1+i))
}

// Answers to programs that ignore proxy variables.
const (
	// ReasonHeader is the header with the reason of a refusal, for programs and debugging.
	ReasonHeader = "X-Ralph-Egress"
	// TLSDenied is the fatal alert "access denied", so that programs report that instead of a broken connection.
	TLSDenied = "\x15\x03\x03\x00\x02\x02\x31"
)
