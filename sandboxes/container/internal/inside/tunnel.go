package inside

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/xtaci/smux"
)

// maxStreams is the maximum number of open connections; the forwarder inside has the same limit.
const maxStreams = 1024

// tunnelEnd returns one end of the tunnel over the standard input and output of a process.
func tunnelEnd(c io.ReadWriteCloser, client bool) (*smux.Session, error) {
	config := &smux.Config{
		Version: 2, KeepAliveDisabled: true, // in version 2 an unread stream does not block others
		MaxFrameSize: 32 << 10, MaxStreamBuffer: 256 << 10, MaxReceiveBuffer: maxStreams * 256 << 10,
	}
	if client {
		return smux.Client(c, config)
	}
	return smux.Server(c, config)
}

// ServeTunnel is the host's end of the tunnel: it joins each stream of c to a new connection to the socket. It returns when
// c or ctx has ended and all connections are closed.
func ServeTunnel(ctx context.Context, c net.Conn, socket string) {
	defer func() { _ = c.Close() }()
	session, err := tunnelEnd(c, false)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var joined sync.WaitGroup
	defer joined.Wait()
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		if session.NumStreams() > maxStreams {
			_ = stream.Close()
			continue
		}
		joined.Go(func() { join(ctx, stream, socket) })
	}
}

// join copies between one stream and a new connection to the proxy, until both directions have ended.
func join(ctx context.Context, stream *smux.Stream, socket string) {
	defer func() { _ = stream.Close() }()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.UnixConn).CloseWrite()
	})
	_, _ = io.Copy(stream, conn)
	_ = stream.CloseWrite()
	_ = conn.Close()
	_ = stream.Close()
	in.Wait()
}
