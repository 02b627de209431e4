package landlock

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/egress/forward"
)

// relay listens on loopback ports of the host and forwards to the egress proxy. Inside other sandboxes the proxy has fixed
// addresses; here the ports are whichever are free, so relay replaces the fixed addresses in commands' environment and
// arguments. Connections of other users of the host are closed.
type relay struct {
	ports    []uint16
	replacer *strings.Replacer
	stop     func()
}

// openRelay forwards connections of the user with uid to the egress socket.
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
	stop, err := forward.Start(forward.Config{Socket: socket, Listen: listen})
	if err != nil {
		return nil, err
	}
	d.replacer, d.stop = strings.NewReplacer(pairs...), stop
	return d, nil
}

// close closes the relay. It may be called again, and on nil.
func (d *relay) close() {
	if d != nil {
		d.stop()
	}
}

// replace replaces the fixed addresses in texts with those of the relay.
func (d *relay) replace(texts []string) (replaced []string) {
	if d == nil {
		return texts
	}
	for _, text := range texts {
		replaced = append(replaced, d.replacer.Replace(text))
	}
	return replaced
}

// userListener accepts only connections of one user.
type userListener struct {
	net.Listener
	uid int
}

// Accept returns the next connection of the user, and closes those of other users.
func (d *userListener) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || userOf(c) == d.uid {
			return c, err
		}
		_ = c.Close()
	}
}

// userOf returns the user id of the peer of a loopback connection; -1: unknown.
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
		text, _ := os.ReadFile(table) // the host may have no IPv6
		if uid := parseUser(text, from.Port(), to.Port()); uid >= 0 {
			return uid
		}
	}
	return -1
}

// parseUser returns the user id, in the kernel's table of sockets, of the socket that is connected between the two ports.
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
