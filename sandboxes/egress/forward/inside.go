package forward

import "github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"

const (
	dnsPort      = 53
	namesPrefix  = "127.64.0.0" // first address for names
	noProxyHosts = "127.0.0.1,localhost,::1"
)

// ResolvConf is the /etc/resolv.conf of a sandbox: the [Forwarder] resolves names.
const ResolvConf = "nameserver 127.0.0.1\noptions attempts:1 timeout:5\n"

// Env returns the environment ("K=V") of every command in a sandbox with a [Forwarder]: the proxy variables in both
// spellings, for programs that bypass DNS.
func Env() []string {
	proxy := "http://" + wire.EndpointAddr(-1).String()
	return []string{
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy,
		"NO_PROXY=" + noProxyHosts, "no_proxy=" + noProxyHosts,
		// Without this, Node's own fetch ignores the variables above.
		"NODE_USE_ENV_PROXY=1",
	}
}
