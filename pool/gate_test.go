package pool_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// gated is an agent that says that it has started, and continues once somebody writes into the pipe named after its issue.
const gated = `cat >/dev/null; echo started; mkfifo "$GO/$RALPH_ISSUE_KEY" 2>/dev/null; read line < "$GO/$RALPH_ISSUE_KEY"
echo work >> "$RALPH_ISSUE_KEY.txt"; git add -A; git commit -qm work` + done

// gate lets the agents of a fixture continue one by one, and signals which have started.
type gate struct {
	*fixture
	dir     string
	started chan string
	ended   chan string
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{fixture: newFixture(t, gated), dir: t.TempDir(), started: make(chan string, 100), ended: make(chan string, 100)}
	g.Config.Run.Env = append(os.Environ(), "GO="+g.dir)
	g.onStarted(func(key string) { g.started <- key })
	started := g.onEvent
	g.onEvent = func(e journal.Event) {
		started(e)
		if e.Kind == journal.EventEnded {
			g.ended <- e.Key
		}
	}
	return g
}

func (g *gate) goOn(keys ...string) {
	g.t.Helper()
	for _, key := range keys {
		path := filepath.Join(g.dir, key)
		if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			g.t.Fatal(err)
		}
		both, err := os.OpenFile(path, os.O_RDWR, 0) // open until the end: the agent may open its end later
		if err != nil {
			g.t.Fatal(err)
		}
		g.t.Cleanup(func() { _ = both.Close() })
		if _, err := both.WriteString("go on\n"); err != nil {
			g.t.Fatal(err)
		}
	}
}

// next waits for the next agents to start.
func (g *gate) next(n int) []string { return g.wait(g.started, n, "started") }

// wait returns the next n keys.
func (g *gate) wait(from chan string, n int, what string) []string {
	g.t.Helper()
	var keys []string
	for range n {
		select {
		case key := <-from:
			keys = append(keys, key)
		case <-time.After(2 * time.Minute): // only a failing test takes that long
			g.t.Fatalf("only %v %s", keys, what)
		}
	}
	return keys
}

// idle fails the test if another agent has started. Callers know that the pool has looked at its backlog.
func (g *gate) idle() {
	g.t.Helper()
	select {
	case key := <-g.started:
		g.t.Errorf("%s has started", key)
	default:
	}
}

// told returns the texts of the events that match.
func (g *gate) told(match func(journal.Event) bool) chan string {
	texts, seen := make(chan string, 100), g.onEvent
	g.onEvent = func(e journal.Event) {
		if seen(e); match(e) {
			texts <- e.Text
		}
	}
	return texts
}

func isProblem(e journal.Event) bool { return e.Kind == journal.EventProblem }

// begin sweeps in the background; wait returns at the end.
func (g *gate) begin(ctx context.Context, p *pool.Pool, keys ...string) (wait func() pool.Summary) {
	g.t.Helper()
	out := make(chan pool.Summary, 1)
	go func() {
		s, err := p.Sweep(ctx, keys...)
		if err != nil {
			g.t.Error(err)
		}
		out <- s
	}()
	return func() pool.Summary { return <-out }
}
