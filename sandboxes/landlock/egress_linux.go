package landlock

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// relay listens at ports of the host's loopback interface and forwards to the egress proxy. Every sandbox
// knows the proxy by the same addresses; here they are those that are free, so that they are replaced in the environment and
// arguments of commands. Other users of the host find the ports, and get nothing.
type relay struct {
	ports    []uint16
	replacer *strings.Replacer
	stop     func()
}

// openRelay forwards connections of the user to the egress socket.
func openRelay(socket string, uid int) (*relay, error) {
	d := &relay{}
	var pairs []string
	listen := func(ctx context.Context, known netip.AddrPort) (net.Listener, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		at, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		d.ports, pairs = append(d.ports, at.Port()), append(pairs, known.String(), at.String())
		return &userListener{l, uid}, nil
	}
	stop, err := egress.Start(egress.ForwardConfig{Socket: socket, Listen: listen})
	if err != nil {
		return nil, err
	}
	d.replacer, d.stop = strings.NewReplacer(pairs...), stop
	return d, nil
}

// close ends it; it can be called again. A nil *relay does nothing.
func (d *relay) close() {
	if d != nil {
		d.stop()
	}
}

// replace returns texts with the addresses that lead to the relay.
func (d *relay) replace(texts []string) (replaced []string) {
	if d == nil {
		return texts
	}
	for _, text := range texts {
		replaced = append(replaced, d.replacer.Replace(text))
	}
	return replaced
}

// userListener is a listener that accepts connections of one user.
type userListener struct {
	net.Listener
	uid int
}

// Accept takes the next connection of the user. Those of others are closed.
func (d *userListener) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || userOf(c) == d.uid {
			return c, err
		}
		_ = c.Close()
	}
}

// userOf finds the user on the other side of a connection on loopback; -1: none.
func userOf(c net.Conn) int {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return -1
	}
	to, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return -1
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, _ := os.ReadFile(table) // a host may have no IPv6
		if uid := parseUser(text, from.Port(), to.Port()); uid >= 0 {
			return uid
		}
	}
	return -1
}

// parseUser finds, in the kernel's table of sockets, the user of the one that is connected from one port to another.
func parseUser(table []byte, from, to uint16) int {
	const local, remote, uid = 1, 2, 7
	port := func(address []byte) uint16 {
		_, hex, _ := bytes.Cut(address, []byte(":"))
		n, err := strconv.ParseUint(string(hex), 16, 16)
		if err != nil {
			return 0
		}
		return uint16(n)
	}
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) <= uid || port(f[local]) != from || port(f[remote]) != to {
			continue
		}
		if n, err := strconv.ParseUint(string(f[uid]), 10, 31); err == nil {
			return int(n)
		}
	}
	return -1
}
