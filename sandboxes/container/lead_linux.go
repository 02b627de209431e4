package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// lead is the tunnel's end inside. It leads what commands send out into in and out until these end.
func lead(ctx context.Context, in io.Reader, out io.Writer) error {
	conceal()
	getThreads()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	here, there := net.Pipe()
	hangUp := func() { cancel(errors.New("ralph has hung up")); _ = there.Close() }
	go func() { _, _ = io.Copy(there, in); hangUp() }()
	go func() { _, _ = io.Copy(out, there); hangUp() }()
	f, err := egress.NewForwarder(ctx, egress.ForwardConfig{Dial: tunnelDialer(here)})
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Run(ctx)
}

// tunnelDialer makes connections out of requests over one connection.
func tunnelDialer(c net.Conn) func(context.Context) (net.Conn, error) {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	var once sync.Once
	transport := &http.Transport{
		Protocols: &only, HTTP2: tunnelHTTP2(), DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			var conn net.Conn
			once.Do(func() { conn = c })
			if conn == nil {
				return nil, errors.New("the way out has ended")
			}
			return conn, nil
		},
	}
	return func(ctx context.Context) (net.Conn, error) {
		// The request lives as long as the connection, and ctx only as long as the dialling.
		life, end := context.WithCancelCause(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
		defer stop()
		body, input := io.Pipe()
		r, err := http.NewRequestWithContext(life, http.MethodPost, "http://ralph/", body)
		if err != nil {
			end(err)
			return nil, err
		}
		answer, err := transport.RoundTrip(r)
		if err == nil && answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			err = fmt.Errorf("the egress proxy cannot be reached (%s)", answer.Status)
		}
		if err != nil {
			end(err)
			return nil, err
		}
		return &led{in: input, out: answer.Body, end: end}, nil
	}
}

// led is a connection through the tunnel.
type led struct {
	in  *io.PipeWriter
	out io.ReadCloser
	end context.CancelCauseFunc
}

func (c *led) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *led) Write(p []byte) (int, error) { return c.in.Write(p) }
func (c *led) CloseWrite() error           { return c.in.Close() }

func (c *led) Close() error {
	c.end(net.ErrClosed)
	_ = c.in.Close()
	return c.out.Close()
}

func (*led) LocalAddr() net.Addr              { return &net.UnixAddr{Net: "unix"} }
func (*led) RemoteAddr() net.Addr             { return &net.UnixAddr{Net: "unix"} }
func (*led) SetDeadline(time.Time) error      { return nil }
func (*led) SetReadDeadline(time.Time) error  { return nil }
func (*led) SetWriteDeadline(time.Time) error { return nil }
