package egress

import "net/netip"

// What programs in a sandbox see. It is the same in every sandbox, because each has a network of its own: so the
// environment of a command can be written before its sandbox is there.
const (
	proxyPort    = 15380 // the HTTP proxy; endpoints have the ports that follow
	maxEndpoints = 64    // of one proxy
	dnsPort      = 53
	loopback     = "127.0.0.1"  // where proxy, endpoints and DNS are
	namesPrefix  = "127.64.0.0" // names get addresses from here on
	exempt       = "127.0.0.1,localhost,::1"
)

// ResolvConf is the /etc/resolv.conf of a sandbox: its names are resolved by the [Forwarder].
const ResolvConf = "nameserver 127.0.0.1\noptions attempts:1 timeout:5\n"

// Env is the environment ("K=V") of every command in a sandbox that has a [Forwarder]: the proxy variables, in both
// spellings, for programs that have a way of their own to find addresses.
func Env() []string {
	proxy := "http://" + endpointAddr(-1).String()
	return []string{
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy,
		"NO_PROXY=" + exempt, "no_proxy=" + exempt,
		// Node's own fetch heeds the variables above only when this asks it to.
		"NODE_USE_ENV_PROXY=1",
	}
}

// endpointAddr is where the sandbox reaches the i-th endpoint; -1 is the HTTP proxy.
func endpointAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(proxyPort+1+i))
}
