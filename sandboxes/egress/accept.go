package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// accept takes connections from the sandbox until the listener is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely. The next try may succeed.
			p.log.Warn("egress accept", "error", err)
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		m, err := p.admit(c)
		if errors.Is(err, ErrClosed) {
			_ = c.Close()
			return
		}
		if err != nil {
			p.no(c, "", 0, err) // fits into any socket's buffer
			_ = c.Close()
			continue
		}
		p.work.Go(func() { p.begin(m) })
	}
}

// admit counts a connection from the sandbox, until it is closed.
func (p *Proxy) admit(c net.Conn) (*metered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if len(p.open) >= p.limits.Connections {
		return nil, deny(TooMany, "%d connections are open", p.limits.Connections)
	}
	p.open[c] = struct{}{}
	spent := func() {
		p.refuse("", 0, deny(TooMuch, "the run has moved %d bytes", p.limits.Bytes))
		_ = c.Close()
	}
	return newMetered(c, &p.left, p.limits.Idle, spent, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	}), nil
}

// begin reads what a connection is for, and serves it to its end or hands it on.
func (p *Proxy) begin(c *metered) {
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
			_, _ = io.WriteString(c, replyNo+string(Malformed)+"\n")
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
		kept = p.hand(c, purpose{kind: forProxy})
	case verbEndpoint:
		n, err := strconv.Atoi(pre.arg)
		if err != nil || n < 0 || n >= len(p.endpoints) {
			p.no(c, "", 0, deny(Malformed, "there is no such endpoint"))
			return
		}
		kept = p.hand(c, purpose{kind: forEndpoint, endpoint: p.endpoints[n]})
	case verbConnect:
		kept = p.connect(c, pre.arg)
	}
}

// hand gives a connection to the HTTP server; false when that has ended.
func (p *Proxy) hand(c net.Conn, why purpose) bool {
	if _, err := io.WriteString(c, replyOK); err != nil {
		return false
	}
	return p.handoff.give(&purposed{Conn: c, purpose: why})
}

// connect serves a connection to a host; true when it has been handed on.
func (p *Proxy) connect(c net.Conn, target string) bool {
	host, port, err := splitTarget(target)
	if err != nil {
		p.no(c, "", 0, deny(Malformed, "the target is not HOST:PORT"))
		return false
	}
	if port == httpPort {
		// Each request is judged by itself, and connects by itself.
		if _, err := p.policy.permit(host, port); err != nil {
			p.no(c, host, port, err)
			return false
		}
		return p.hand(c, purpose{kind: forHost, host: host})
	}
	server, err := p.policy.connect(p.ctx, host, port)
	if err != nil {
		p.no(c, host, port, err)
		return false
	}
	if _, err := io.WriteString(c, replyOK); err != nil {
		_ = server.Close()
		return false
	}
	p.tunnel(c, server, host, port)
	return false
}

// no refuses a connection in the socket's protocol.
func (p *Proxy) no(c net.Conn, host string, port int, err error) {
	_, _ = io.WriteString(c, replyNo+string(p.refuse(host, port, err))+"\n")
}
