package landlock

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// firstFree is the first port that is not for the system's own services.
const firstFree = 1024

// connect connects a socket to the egress proxy or to a server of the command's own, both on loopback.
func (w *warden) connect(q *question) error {
	to, err := w.address(q)
	if err != nil {
		return err
	}
	if !to.Addr().IsLoopback() && !to.Addr().IsUnspecified() {
		return unix.ENETUNREACH
	}
	fd, err := w.borrow(q)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if door, ok := w.gate.door(to.Port()); ok {
		return w.gate.enter(fd, door)
	}
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(loopbackLike(to.Addr()), to.Port())
	}
	if !w.gate.listensAt(to.Port()) {
		return unix.ECONNREFUSED
	}
	return unix.Connect(fd, sockaddr(fd, to))
}

// bind gives a socket an address on loopback: what asks for every interface gets this one.
func (w *warden) bind(q *question) error {
	to, err := w.address(q)
	if err != nil {
		return err
	}
	fd, err := w.borrow(q)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if to.Addr().IsUnspecified() {
		only, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		if to.Addr().Is6() && (err != nil || only == 0) {
			to = netip.AddrPortFrom(netip.IPv4Unspecified(), to.Port())
		}
		to = netip.AddrPortFrom(loopbackLike(to.Addr()), to.Port())
	}
	switch {
	case !to.Addr().IsLoopback():
		return unix.EADDRNOTAVAIL
	case to.Port() > 0 && to.Port() < firstFree:
		return unix.EACCES
	}
	if err := unix.Bind(fd, sockaddr(fd, to)); err != nil {
		return err
	}
	return w.gate.know(fd)
}

// listen lets a socket take connections that has its address from bind. Without one the kernel would choose every
// interface.
func (w *warden) listen(q *question) error {
	fd, err := w.borrow(q)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !w.gate.knows(fd) || !onLoopback(fd) {
		return unix.EACCES
	}
	return unix.Listen(fd, int(int32(uint32(q.Args[1]))))
}

func onLoopback(fd int) bool {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr).IsLoopback()
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap().IsLoopback()
	}
	return false
}

// address is the second argument of connect and bind. What is not of the internet goes on, to be judged by the rules.
func (w *warden) address(q *question) (netip.AddrPort, error) {
	const most = 128
	n := int(min(uint32(q.Args[2]), most))
	if n < 2 {
		return netip.AddrPort{}, unix.EINVAL
	}
	b, err := w.memory(q, q.Args[1], n)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return parseAddress(b)
}

// parseAddress reads a struct sockaddr. The error is what the call gives back.
func parseAddress(b []byte) (netip.AddrPort, error) {
	const sizeInet4, sizeInet6 = 8, 24 // as far as they are looked at
	if len(b) < 2 {
		return netip.AddrPort{}, unix.EINVAL
	}
	family := binary.NativeEndian.Uint16(b)
	switch {
	case family == unix.AF_INET && len(b) >= sizeInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), nil
	case family == unix.AF_INET6 && len(b) >= sizeInet6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[2:])), nil
	case family == unix.AF_NETLINK, family == unix.AF_UNSPEC:
		return netip.AddrPort{}, errGoOn
	case family == unix.AF_INET, family == unix.AF_INET6:
		return netip.AddrPort{}, unix.EINVAL
	}
	return netip.AddrPort{}, unix.EACCES
}

func loopbackLike(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// sockaddr is an address in the form that a socket of this family takes.
func sockaddr(fd int, a netip.AddrPort) unix.Sockaddr {
	family, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if family == unix.AF_INET6 {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	if !a.Addr().Is4() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}
