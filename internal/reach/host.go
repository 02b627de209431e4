package reach

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// PrivateHost reports whether the host currently resolves only to addresses of this host or a private network. A failed
// lookup counts as false. It waits at most 5 s.
func PrivateHost(ctx context.Context, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return Of(addr) == Private
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && len(found) > 0 && !slices.ContainsFunc(found, func(a netip.Addr) bool { return Of(a) != Private })
}
