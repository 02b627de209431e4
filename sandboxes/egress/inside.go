package egress

import "net/netip"

// What programs in a sandbox see. It is the same in all sandboxes, because each has its own network. So the environment of
// commands is known before the sandbox exists.
const (
	proxyPort    = 15380 // the HTTP proxy; the next ports are those of endpoints
	maxEndpoints = 64    // endpoints of one proxy
	dnsPort      = 53
	loopback     = "127.0.0.1"  // address of proxy, endpoints and DNS
	namesPrefix  = "127.64.0.0" // first address for names
	noProxyHosts = "127.0.0.1,localhost,::1"
)

// ResolvConf is the /etc/resolv.conf of a sandbox: the [Forwarder] resolves names.
const ResolvConf = "nameserver 127.0.0.1\noptions attempts:1 timeout:5\n"

// Env returns the environment ("K=V") of every command in a sandbox with a [Forwarder]: the proxy variables in both
// spellings, for programs that bypass DNS.
func Env() []string {
	proxy := "http://" + endpointAddr(-1).String()
	return []string{
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy,
		"NO_PROXY=" + noProxyHosts, "no_proxy=" + noProxyHosts,
		// Without this, Node's own fetch ignores the variables above.
		"NODE_USE_ENV_PROXY=1",
	}
}

// endpointAddr returns the address of the i-th endpoint in the sandbox; -1 is the HTTP proxy.
func endpointAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(proxyPort+1+i))
}
