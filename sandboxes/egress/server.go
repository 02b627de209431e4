package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/ralph-pool/ralph/internal/servertools"
	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// servedConn is a connection to the HTTP server with the handler of its requests.
type servedConn struct {
	net.Conn
	handler http.HandlerFunc
}

func (c *servedConn) CloseWrite() error { return wire.CloseWrite(c.Conn) }

// handlerKey is the context key of the handler of a request's connection.
type handlerKey struct{}

// handoff is the listener of the HTTP server. It accepts connections whose preface has been read.
type handoff struct {
	conns chan net.Conn
	done  <-chan struct{} // closed when the proxy is closed
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// give passes a connection to the server. It returns false if the server has ended.
func (h *handoff) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Close does nothing: the listener ends with the proxy.
func (*handoff) Close() error { return nil }

// Addr returns a placeholder.
func (*handoff) Addr() net.Addr { return &net.UnixAddr{Name: "egress", Net: "unix"} }

// serveHTTP starts the HTTP server for all connections that carry HTTP.
func (p *Proxy) serveHTTP() {
	p.handoff = &handoff{conns: make(chan net.Conn), done: p.ctx.Done()}
	p.http = &http.Server{
		Handler:           http.HandlerFunc(route),
		ReadHeaderTimeout: p.limits.Handshake,
		IdleTimeout:       p.limits.Idle,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if c, ok := c.(*servedConn); ok {
				return context.WithValue(ctx, handlerKey{}, c.handler)
			}
			return ctx
		},
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				p.work.Add(1)
			case http.StateClosed, http.StateHijacked:
				p.work.Done()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	p.work.Go(func() { _ = p.http.Serve(p.handoff) }) // ends with the handoff
}

// route calls the handler of a request's connection.
func route(w http.ResponseWriter, r *http.Request) {
	// The answer may begin before the end of the request.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if serve, ok := r.Context().Value(handlerKey{}).(http.HandlerFunc); ok {
		serve(w, r)
	}
}

// serveProxy serves a request to an HTTP proxy: CONNECT, or http://host/path.
func (p *Proxy) serveProxy(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.serveConnect(w, r)
		return
	}
	p.servePlain(w, r, "")
}

// servePort80 serves requests to a host's port 80 from a program that ignores proxy variables.
func (p *Proxy) servePort80(host string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { p.servePlain(w, r, host) }
}

// serveConnect serves a CONNECT request.
func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request) {
	host, port, err := splitTarget(r.Host)
	if err != nil {
		p.writeHTTPRefusal(w, "", 0, deny(Malformed, "the target is not HOST:PORT"))
		return
	}
	if port == wire.HTTPPort {
		// The requests in the tunnel are checked one by one.
		if _, err := p.policy.permit(host, port); err != nil {
			p.writeHTTPRefusal(w, host, port, err)
			return
		}
		if c := hijack(w); c != nil && !p.handoff.give(&servedConn{c, p.servePort80(host)}) {
			_ = c.Close()
		}
		return
	}
	server, err := p.policy.connect(r.Context(), host, port)
	if err != nil {
		p.writeHTTPRefusal(w, host, port, err)
		return
	}
	// The server's ConnState no longer counts a hijacked connection, so the handler counts itself.
	p.work.Add(1)
	defer p.work.Done()
	c := hijack(w)
	if c == nil {
		_ = server.Close()
		return
	}
	p.tunnel(c, server, host, port)
}

// hijack takes over the connection from the HTTP server and answers the CONNECT. It returns nil if the connection has
// failed.
func hijack(w http.ResponseWriter) net.Conn {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = c.Close()
		return nil
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ := buffered.Reader.Peek(n) // Peek cannot fail for buffered bytes
		return &replayed{Conn: c, first: io.MultiReader(strings.NewReader(string(early)), c)}
	}
	return c
}

// writeHTTPRefusal refuses a request with a text that programs show to their users.
func (p *Proxy) writeHTTPRefusal(w http.ResponseWriter, host string, port int, err error) {
	reason := p.refuse(host, port, err)
	detail := ""
	if d, ok := errors.AsType[*denial](err); ok {
		detail = ": " + d.detail
	}
	status := http.StatusForbidden
	switch reason {
	case NotResolved, NotConnected, Unreadable:
		status = http.StatusBadGateway
	case NoCredential: // agents do not retry after this status
		status = http.StatusUnauthorized
	case Malformed:
		status = http.StatusBadRequest
	case TooManyBytes:
		status = http.StatusRequestEntityTooLarge
	case Budget:
		status = http.StatusPaymentRequired
	default:
	}
	text, kind := "ralph's sandbox refuses this connection: "+string(reason)+detail+"\n", "text/plain; charset=utf-8"
	if reason == ServerTool || reason == OtherModel {
		text, kind = servertools.Answer(strings.TrimSpace(text)), "application/json"
	}
	w.Header().Set(wire.ReasonHeader, string(reason))
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
