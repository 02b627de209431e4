package egress

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound the network use of one sandbox. Zero means the default, which is never "no limit".
type Limits struct {
	// Connections that are open at once; default 256.
	Connections int
	// Bytes is the sum of what the sandbox sends and gets; default 32 GiB.
	Bytes int64
	// Request is the size of one request to an endpoint; default 64 MiB.
	Request int64
	// Idle ends a connection on which nothing has moved; default 15 min, for models that think long.
	Idle time.Duration
	// Handshake is the time for a request to be complete once it has begun; default 10 s.
	Handshake time.Duration
	// Dial is the time to look up and connect; default 20 s.
	Dial time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Connections: cmp.Or(l.Connections, 256),
		Bytes:       cmp.Or(l.Bytes, 32<<30),
		Request:     cmp.Or(l.Request, 64<<20),
		Idle:        cmp.Or(l.Idle, 15*time.Minute),
		Handshake:   cmp.Or(l.Handshake, 10*time.Second),
		Dial:        cmp.Or(l.Dial, 20*time.Second),
	}
}

func (l Limits) check() error {
	if l.Connections < 0 || l.Bytes < 0 || l.Request < 0 || l.Idle < 0 || l.Handshake < 0 || l.Dial < 0 {
		return fmt.Errorf("egress limits %+v: a limit cannot be negative; zero means the default", l)
	}
	return nil
}

// errSpent ends every connection of a sandbox that has moved its bytes.
var errSpent = errors.New("the sandbox has used up its bytes")

// metered is a connection from the sandbox: it counts bytes against the run's, and closes itself when nothing moves.
type metered struct {
	net.Conn
	left   *atomic.Int64 // bytes of the run
	spent  func()        // called when there are none left
	idle   time.Duration
	timer  *time.Timer
	closed func() // called once
	once   sync.Once
}

func newMetered(c net.Conn, left *atomic.Int64, idle time.Duration, spent, closed func()) *metered {
	m := &metered{Conn: c, left: left, idle: idle, spent: spent, closed: closed}
	m.timer = time.AfterFunc(idle, func() { _ = c.Close() })
	return m
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	return n, m.count(n, err)
}

func (m *metered) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	return n, m.count(n, err)
}

func (m *metered) count(n int, err error) error {
	if n > 0 {
		m.timer.Reset(m.idle)
		if m.left.Add(-int64(n)) < 0 {
			m.spent()
			return errSpent
		}
	}
	return err
}

// CloseWrite ends the direction to the sandbox.
func (m *metered) CloseWrite() error { return closeWrite(m.Conn) }

// Close is idempotent.
func (m *metered) Close() error {
	err := m.Conn.Close()
	m.once.Do(func() {
		m.timer.Stop()
		m.closed()
	})
	return err
}

// closeWrite closes one direction of a connection where it has two.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// replayed is a connection of which some bytes have been read already.
type replayed struct {
	net.Conn
	first io.Reader // the bytes, then the connection
}

func (c *replayed) Read(b []byte) (int, error) { return c.first.Read(b) }
func (c *replayed) CloseWrite() error          { return closeWrite(c.Conn) }

// splice copies both ways until both are done, and closes both connections.
func splice(a, b net.Conn) {
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn) {
		if _, err := io.CopyBuffer(onlyWriter{to}, onlyReader{from}, make([]byte, 64<<10)); err != nil {
			_ = a.Close()
			_ = b.Close()
			return
		}
		_ = closeWrite(to)
	}
	both.Go(func() { copyTo(a, b) })
	copyTo(b, a)
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// onlyReader and onlyWriter hide the methods that io.CopyBuffer would use instead of the buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
