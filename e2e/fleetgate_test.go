package e2e

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// gate is a machine's only connection to the database: a socket that forwards data until it is cut.
type gate struct {
	dir    string // folder of the machine's socket
	target string // the database's socket

	mu     sync.Mutex
	open   chan struct{} // guarded by mu; closed: data passes
	refuse bool          // guarded by mu; rejects new connections
	conns  []net.Conn    // guarded by mu
}

const gateSocket = ".s.PGSQL.5432"

// newGate returns a gate to the server whose socket is in dir.
func newGate(t *testing.T, dir string) *gate {
	t.Helper()
	own, err := os.MkdirTemp("", "ralph-gate-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{dir: own, target: filepath.Join(dir, gateSocket), open: make(chan struct{})}
	close(g.open)
	l, err := net.Listen("unix", filepath.Join(own, gateSocket))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.cut()
		g.heal()
		all.Wait()
		_ = os.RemoveAll(own)
	})
	return g
}

// pass forwards data between two sides until one of them closes.
func (g *gate) pass(c net.Conn) {
	defer c.Close()
	there, err := net.Dial("unix", g.target)
	if err != nil {
		return
	}
	defer there.Close()
	g.mu.Lock()
	refused := g.refuse
	g.conns = append(g.conns, c, there)
	g.mu.Unlock()
	if refused {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, there}, {there, c}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			buffer := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buffer)
				g.mu.Lock()
				open := g.open
				g.mu.Unlock()
				<-open
				if _, werr := way[1].Write(buffer[:n]); err != nil || werr != nil {
					return
				}
			}
		})
	}
	both.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = slices.DeleteFunc(g.conns, func(x net.Conn) bool { return x == c || x == there })
}

// cut closes all connections and rejects new ones.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = true
	for _, c := range g.conns {
		_ = c.Close()
	}
}

// silence stops all data without an error.
func (g *gate) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// heal reverts cut and silence.
func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = false
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}
