package landlock

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// gate is what a command may connect to: the doors to the egress proxy, and its own servers. All are on the loopback
// interface that it shares with the host; so a door opens only for connections that the warden has made.
type gate struct {
	mu       sync.Mutex
	doors    map[uint16]netip.AddrPort // guarded by mu; by the port that commands know
	expected map[uint16]struct{}       // guarded by mu; source ports of the warden's connections
	sockets  map[uint64]struct{}       // guarded by mu; inodes of the sockets that were bound
}

func newGate() *gate {
	return &gate{
		doors: make(map[uint16]netip.AddrPort), expected: make(map[uint16]struct{}), sockets: make(map[uint64]struct{}),
	}
}

// forwarder opens the doors.
func (g *gate) forwarder(ctx context.Context, socket string) (*egress.Forwarder, error) {
	return egress.NewForwarder(ctx, egress.ForwardConfig{Socket: socket, Listen: g.open})
}

// open opens a door on a port that is free, in the place of one that commands know.
func (g *gate) open(ctx context.Context, known netip.AddrPort) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doors[known.Port()] = at
	return &doorway{Listener: l, gate: g}, nil
}

// door returns where a port leads that commands know as one of the proxy's.
func (g *gate) door(port uint16) (netip.AddrPort, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.doors[port]
	return at, ok
}

// enter connects a socket to a door, which is told the port that it comes from before it comes.
func (g *gate) enter(fd int, door netip.AddrPort) error {
	port, err := portOf(fd)
	if err == nil && port == 0 {
		if err = unix.Bind(fd, sockaddr(fd, netip.AddrPortFrom(door.Addr(), 0))); err == nil {
			port, err = portOf(fd)
		}
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.expected[port] = struct{}{}
	g.mu.Unlock()
	return unix.Connect(fd, sockaddr(fd, door))
}

// comes reports, once, whether a connection comes from the warden.
func (g *gate) comes(c net.Conn) bool {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.expected[from.Port()]
	delete(g.expected, from.Port())
	return ok
}

// doorway is a door's listener.
type doorway struct {
	net.Listener
	gate *gate
}

// Accept takes the next connection of the command's. Those of others are closed.
func (d *doorway) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || d.gate.comes(c) {
			return c, err
		}
		_ = c.Close()
	}
}

// know remembers a socket that has an address on loopback.
func (g *gate) know(fd int) error {
	inode, err := inodeOf(fd)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets[inode] = struct{}{}
	return nil
}

func (g *gate) knows(fd int) bool {
	inode, err := inodeOf(fd)
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.sockets[inode]
	return ok
}

// listensAt reports whether all that listens at a port of this host, and something does, is the command's.
func (g *gate) listensAt(port uint16) bool {
	var found []uint64
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(name)
		if err != nil && name != "/proc/self/net/tcp6" { // a host without it has no such listener either
			return false
		}
		found = append(found, listeners(text, port)...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, inode := range found {
		if _, ok := g.sockets[inode]; !ok {
			return false
		}
	}
	return len(found) > 0
}

// listeners reads the inodes of the sockets that listen at a port from the kernel's table. A line that cannot be read is
// inode 0, which is nobody's.
func listeners(table []byte, port uint16) (inodes []uint64) {
	const local, state, inode, listening = 1, 3, 9, "0A"
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) <= inode || string(f[state]) != listening {
			continue
		}
		_, hex, ok := bytes.Cut(f[local], []byte(":"))
		at, err := strconv.ParseUint(string(hex), 16, 16)
		if ok && err == nil && uint16(at) != port {
			continue
		}
		n, _ := strconv.ParseUint(string(f[inode]), 10, 64)
		inodes = append(inodes, n)
	}
	return inodes
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

// portOf is the port that a socket has on this side; 0: none.
func portOf(fd int) (uint16, error) {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port), nil
	case *unix.SockaddrInet6:
		return uint16(a.Port), nil
	}
	return 0, unix.EAFNOSUPPORT
}
