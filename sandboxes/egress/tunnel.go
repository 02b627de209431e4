package egress

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// tunnel copies data between the sandbox and a server until both are done. A TLS connection must name the host that the
// rule allows, because many hosts share an address.
func (p *Proxy) tunnel(client, server net.Conn, host string, port int) {
	// Close of the proxy closes the client's side itself; this closes the server's side.
	stop := context.AfterFunc(p.ctx, func() { _ = server.Close() })
	defer stop()
	wire.Splice(&checkedConn{Conn: client, check: func() (io.Reader, error) { return p.checkFirstBytes(client, host, port) }}, server)
}

// checkedConn is the sandbox's side of a tunnel. Its first Read checks the beginning of the connection. The server may send
// data before that.
type checkedConn struct {
	net.Conn
	check   func() (io.Reader, error)
	checked io.Reader
}

func (j *checkedConn) Read(b []byte) (int, error) {
	if j.checked == nil {
		from, err := j.check()
		if err != nil {
			return 0, err
		}
		j.checked = from
	}
	return j.checked.Read(b)
}

func (j *checkedConn) CloseWrite() error { return wire.CloseWrite(j.Conn) }

// checkFirstBytes checks the first bytes and returns a reader of all bytes, or a refusal, after which the connection ends.
func (p *Proxy) checkFirstBytes(client net.Conn, host string, port int) (io.Reader, error) {
	var first [1]byte
	if _, err := io.ReadFull(client, first[:]); err != nil {
		return nil, err // no refusal: the server may send first, and that may have been enough
	}
	all := io.MultiReader(bytes.NewReader(first[:]), client)
	if first[0] != recordHandshake {
		if port == wire.HTTPSPort {
			return nil, p.refuseTunnel(client, host, port, deny(NotTLS, "port 443 only accepts TLS"))
		}
		return all, nil
	}
	_ = client.SetReadDeadline(time.Now().Add(p.limits.Handshake))
	h, err := readHello(p.ctx, all)
	_ = client.SetReadDeadline(time.Time{})
	_, notName := netip.ParseAddr(host)
	switch {
	case err != nil && port != wire.HTTPSPort: // another protocol whose first byte is the same
	case err != nil:
		return nil, p.refuseTunnel(client, host, port, deny(NotTLS, "it begins like TLS, but is not TLS"))
	case h.name == "" && notName != nil && port == wire.HTTPSPort:
		return nil, p.refuseTunnel(client, host, port, deny(NotTLS, "TLS without a server name"))
	case h.name != "" && h.name != host:
		return nil, p.refuseTunnel(client, host, port, deny(WrongHost, "TLS for %s", clip(printable(h.name))))
	}
	return io.MultiReader(bytes.NewReader(h.bytes), client), nil
}

func (p *Proxy) refuseTunnel(client net.Conn, host string, port int, d *denial) error {
	p.refuse(host, port, d)
	if d.reason == WrongHost {
		_, _ = io.WriteString(client, wire.TLSDenied)
	}
	return d
}

// printable replaces everything but printable ASCII in text from the sandbox.
func printable(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
