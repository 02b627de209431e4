package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// accept calls serve with each connection until the listener is closed.
func accept(ctx context.Context, l net.Listener, log *slog.Logger, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			serve(c)
		case errors.Is(err, net.ErrClosed):
			return
		default: // probably out of file descriptors: a later call may succeed
			log.Warn("egress accept", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// closeWith closes a connection when ctx ends or the returned function is called.
func closeWith(ctx context.Context, c net.Conn) (closeNow func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return func() {
		stop()
		_ = c.Close()
	}
}

// admit serves a connection from the sandbox, unless too many are open.
func (p *Proxy) admit(c net.Conn) {
	select {
	case p.slots <- struct{}{}:
	default:
		// This does not block: the reply fits into the socket's buffer.
		p.writeSocketRefusal(c, "", 0, deny(TooManyConnections, "%d connections are open", p.limits.Connections))
		_ = c.Close()
		return
	}
	stop := context.AfterFunc(p.ctx, func() { _ = c.Close() })
	spent := func() {
		p.refuse("", 0, deny(TooManyBytes, "the run has moved %d bytes", p.limits.Bytes))
		_ = c.Close()
	}
	m := newMetered(c, &p.bytesLeft, p.limits.Idle, spent, func() {
		stop()
		<-p.slots
	})
	p.work.Go(func() { p.serveConn(m) })
}

// serveConn reads the preface of a connection, and serves it to its end or hands it over.
func (p *Proxy) serveConn(c *metered) {
	kept := false
	defer func() {
		if !kept {
			_ = c.Close()
		}
	}()
	_ = c.SetDeadline(time.Now().Add(p.limits.Handshake))
	pre, err := readPreface(c)
	if err != nil {
		if errors.Is(err, errPreface) {
			p.refuse("", 0, deny(Malformed, "a connection to the socket speaks another protocol"))
			_, _ = io.WriteString(c, replyRefused+string(Malformed)+"\n")
		}
		return
	}
	_ = c.SetDeadline(time.Time{})
	switch pre.verb {
	case verbPlan:
		body, err := json.Marshal(plan{Ports: p.policy.ports(), Own: p.policy.ownPorts(), Endpoints: len(p.endpoints)})
		if err == nil {
			_, _ = fmt.Fprintf(c, "%s%s", replyOK, body)
		}
	case verbProxy:
		kept = p.handOver(c, p.serveProxy)
	case verbEndpoint:
		n, err := strconv.Atoi(pre.arg)
		if err != nil || n < 0 || n >= len(p.endpoints) {
			p.writeSocketRefusal(c, "", 0, deny(Malformed, "there is no such endpoint"))
			return
		}
		kept = p.handOver(c, func(w http.ResponseWriter, r *http.Request) { p.serveEndpoint(w, r, p.endpoints[n]) })
	case verbConnect:
		kept = p.connect(c, pre.arg)
	}
}

// handOver hands a connection to the HTTP server. It returns false if the server has ended.
func (p *Proxy) handOver(c net.Conn, serve http.HandlerFunc) bool {
	if _, err := io.WriteString(c, replyOK); err != nil {
		return false
	}
	return p.handoff.give(&servedConn{c, serve})
}

// connect serves a connection to a host. It returns true if it has handed the connection to the HTTP server.
func (p *Proxy) connect(c net.Conn, target string) bool {
	host, port, err := splitTarget(target)
	if err != nil {
		p.writeSocketRefusal(c, "", 0, deny(Malformed, "the target is not HOST:PORT"))
		return false
	}
	if port == httpPort {
		// Each request is checked separately, and makes its own connection.
		if _, err := p.policy.permit(host, port); err != nil {
			p.writeSocketRefusal(c, host, port, err)
			return false
		}
		return p.handOver(c, p.servePort80(host))
	}
	server, err := p.policy.connect(p.ctx, host, port)
	if err != nil {
		p.writeSocketRefusal(c, host, port, err)
		return false
	}
	if _, err := io.WriteString(c, replyOK); err != nil {
		_ = server.Close()
		return false
	}
	p.tunnel(c, server, host, port)
	return false
}

// writeSocketRefusal sends a refusal in the socket's protocol.
func (p *Proxy) writeSocketRefusal(c net.Conn, host string, port int, err error) {
	_, _ = io.WriteString(c, replyRefused+string(p.refuse(host, port, err))+"\n")
}
