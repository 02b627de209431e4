package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// recordHandshake is the first byte of a TLS connection.
const recordHandshake = 0x16

// maxHello limits the bytes read for a ClientHello; the largest seen (post-quantum keys, many extensions) have 3 KiB.
const maxHello = 64 << 10

// hello is the beginning of a TLS connection.
type hello struct {
	name  string // the server name in lower case; may be empty
	bytes []byte // all bytes read, to be forwarded
}

var (
	errHello  = errors.New("not a TLS hello")
	errParsed = errors.New("hello is read")
)

// readHello reads a ClientHello. The returned bytes are set even after an error.
func readHello(ctx context.Context, r io.Reader) (hello, error) {
	c := &helloConn{from: io.LimitReader(r, maxHello)}
	var h hello
	seen := false
	// The library's own server parses the hello, however it is split into records, and is stopped there.
	_ = tls.Server(c, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			h.name = strings.ToLower(strings.TrimSuffix(info.ServerName, "."))
			seen = true
			return nil, errParsed
		},
	}).HandshakeContext(ctx)
	h.bytes = c.read.Bytes()
	if !seen {
		return h, errHello
	}
	return h, nil
}

// helloConn is a connection that records what is read and discards what is written.
type helloConn struct {
	from io.Reader
	read bytes.Buffer
}

func (c *helloConn) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.read.Write(b[:n])
	return n, err
}

func (*helloConn) Write(b []byte) (int, error)      { return len(b), nil }
func (*helloConn) Close() error                     { return nil }
func (*helloConn) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (*helloConn) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (*helloConn) SetDeadline(time.Time) error      { return nil }
func (*helloConn) SetReadDeadline(time.Time) error  { return nil }
func (*helloConn) SetWriteDeadline(time.Time) error { return nil }
