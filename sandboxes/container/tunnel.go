package container

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// tunnel carries connections from inside to the egress proxy's socket, where that cannot be mounted: over the standard
// input and output of one call of the engine's "exec". It is HTTP/2: each connection is one request, whose body goes to
// the proxy and whose answer comes from there. Nothing inside chooses where it leads.
type tunnel struct {
	end  context.CancelCauseFunc
	done chan struct{}
}

// maxTunnelled bounds the connections that are open at once; the forwarder inside has no more.
const maxTunnelled = 1024

// tunnelHTTP2 is how either end is set: a connection that is not read holds up no other.
func tunnelHTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxTunnelled, MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 256 << 20,
	}
}

// openTunnel starts it. When it ends before it is closed, the sandbox does.
func (p *Provider) openTunnel(b *box, socket string) *tunnel {
	ctx, end := context.WithCancelCause(context.Background())
	t := &tunnel{end: end, done: make(chan struct{})}
	here, there := net.Pipe()
	server := serveTunnel(here, socket)
	go func() {
		defer close(t.done)
		errs := proc.NewTail(1 << 10)
		argv := append([]string{"exec", "--interactive", b.name, helperPath}, p.config.Helper.Args...)
		_, err := proc.Run(ctx, proc.Spec{
			Argv: p.engine.argv(append(argv, insideTunnel)...), Dir: "/", Env: p.config.HostEnv,
			Stdin: there, Stdout: there, Stderr: errs,
		})
		_ = there.Close()
		server.close()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the way to the egress proxy has ended")
			if said := lastLine(errs.String()); said != "" {
				err = errors.New(err.Error() + ": " + said)
			}
		}
		b.giveUp(err)
	}()
	return t
}

// close ends it and waits; nil has nothing to end.
func (t *tunnel) close() {
	if t == nil {
		return
	}
	t.end(errors.New("the sandbox is closed"))
	<-t.done
}

// tunnelServer is the host's end.
type tunnelServer struct {
	http   *http.Server
	conn   net.Conn
	served sync.WaitGroup
	calls  sync.WaitGroup
}

func serveTunnel(c net.Conn, socket string) *tunnelServer {
	s := &tunnelServer{conn: c}
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Protocols: &only, HTTP2: tunnelHTTP2(), MaxHeaderBytes: 4 << 10, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.calls.Add(1)
			defer s.calls.Done()
			toSocket(w, r, socket)
		}),
	}
	s.served.Go(func() { _ = s.http.Serve(&oneConn{conn: c, gone: make(chan struct{})}) })
	return s
}

func (s *tunnelServer) close() {
	_ = s.conn.Close()
	_ = s.http.Close()
	s.served.Wait()
	s.calls.Wait()
}

// toSocket joins one request and a connection to the proxy.
func toSocket(w http.ResponseWriter, r *http.Request, socket string) {
	var d net.Dialer
	conn, err := d.DialContext(r.Context(), "unix", socket)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	defer stop()
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	var in sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(conn, r.Body)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				break
			}
			if control.Flush() != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = conn.Close()
	_ = r.Body.Close()
	in.Wait()
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	gone chan struct{}
	mu   sync.Mutex
	gave bool // guarded by mu
	once sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	first := !l.gave
	l.gave = true
	l.mu.Unlock()
	if first {
		return l.conn, nil
	}
	<-l.gone
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.gone) }); return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
