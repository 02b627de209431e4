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

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Limits bounds the network use of one sandbox. Zero means the default, which is never "no limit".
type Limits struct {
	// Connections is the maximum number of open connections; default 256.
	Connections int
	// Bytes is the maximum total of bytes sent and received by the sandbox; default 32 GiB.
	Bytes int64
	// Request is the maximum size in bytes of one request to an endpoint; default 64 MiB.
	Request int64
	// Idle is the time without data after which a connection is closed; default 15 min, because models may think long.
	Idle time.Duration
	// Handshake is the maximum time from the start of a request to its end; default 10 s.
	Handshake time.Duration
	// Dial is the maximum time for lookup and connection; default 20 s.
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

// errSpent ends every connection of a sandbox that has used up its bytes.
var errSpent = errors.New("the sandbox has used up its traffic limit")

// metered is a connection from the sandbox. It counts its bytes against the run's limit, and closes itself when idle.
type metered struct {
	net.Conn
	bytesLeft *atomic.Int64 // remaining bytes of the run
	onSpent   func()        // called when none remain
	idle      time.Duration
	timer     *time.Timer
	closed    func() // called once
	once      sync.Once
}

func newMetered(c net.Conn, left *atomic.Int64, idle time.Duration, spent, closed func()) *metered {
	m := &metered{Conn: c, bytesLeft: left, idle: idle, onSpent: spent, closed: closed}
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
		if m.bytesLeft.Add(-int64(n)) < 0 {
			m.onSpent()
			return errSpent
		}
	}
	return err
}

// CloseWrite closes the direction to the sandbox.
func (m *metered) CloseWrite() error { return wire.CloseWrite(m.Conn) }

// Close is idempotent.
func (m *metered) Close() error {
	err := m.Conn.Close()
	m.once.Do(func() {
		m.timer.Stop()
		m.closed()
	})
	return err
}

// replayed is a connection of which the first bytes have been read already.
type replayed struct {
	net.Conn
	first io.Reader // these bytes, then the connection
}

func (c *replayed) Read(b []byte) (int, error) { return c.first.Read(b) }
func (c *replayed) CloseWrite() error          { return wire.CloseWrite(c.Conn) }
