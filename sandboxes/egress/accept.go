package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

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
	pre, err := wire.ReadPreface(c)
	if err != nil {
		if errors.Is(err, wire.ErrPreface) {
			p.refuse("", 0, deny(Malformed, "a connection to the socket speaks another protocol"))
			_, _ = io.WriteString(c, wire.ReplyRefused+string(Malformed)+"\n")
		}
		return
	}
	_ = c.SetDeadline(time.Time{})
	switch pre.Verb {
	case wire.VerbPlan:
		body, err := json.Marshal(wire.Plan{Ports: p.policy.ports(), Own: p.policy.ownPorts(), Endpoints: len(p.endpoints)})
		if err == nil {
			_, _ = fmt.Fprintf(c, "%s%s", wire.ReplyOK, body)
		}
	case wire.VerbProxy:
		kept = p.handOver(c, p.serveProxy)
	case wire.VerbEndpoint:
		n, err := strconv.Atoi(pre.Arg)
		if err != nil || n < 0 || n >= len(p.endpoints) {
			p.writeSocketRefusal(c, "", 0, deny(Malformed, "there is no such endpoint"))
			return
		}
		kept = p.handOver(c, func(w http.ResponseWriter, r *http.Request) { p.serveEndpoint(w, r, p.endpoints[n]) })
	case wire.VerbConnect:
		kept = p.connect(c, pre.Arg)
	}
}

// handOver hands a connection to the HTTP server. It returns false if the server has ended.
func (p *Proxy) handOver(c net.Conn, serve http.HandlerFunc) bool {
	if _, err := io.WriteString(c, wire.ReplyOK); err != nil {
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
	if port == wire.HTTPPort {
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
	if _, err := io.WriteString(c, wire.ReplyOK); err != nil {
		_ = server.Close()
		return false
	}
	p.tunnel(c, server, host, port)
	return false
}

// writeSocketRefusal sends a refusal in the socket's protocol.
func (p *Proxy) writeSocketRefusal(c net.Conn, host string, port int, err error) {
	_, _ = io.WriteString(c, wire.ReplyRefused+string(p.refuse(host, port, err))+"\n")
}
