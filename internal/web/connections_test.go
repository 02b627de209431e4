package web

import (
	"net"
	"slices"
	"testing"
)

// A connection that serves a request stays open.
func TestServingConnectionsStay(t *testing.T) {
	t.Parallel()
	c := &connections{most: 2}
	pipe := func() net.Conn { a, _ := net.Pipe(); return a }
	first := c.add(pipe()).(*connection)
	first.serve(true)
	second := c.add(pipe()).(*connection)
	third := c.add(pipe()).(*connection)
	if len(c.open) != 2 || c.open[0] != first || c.open[1] != third {
		t.Errorf("open: %v, want first and third of %p %p %p", c.open, first, second, third)
	}
	third.serve(true)
	if c.add(pipe()) != nil {
		t.Error("a third one was kept while two serve")
	}
	_ = first.Close()
	if c.add(pipe()) == nil {
		t.Error("no room after one was closed")
	}
}

// A connection that has just served an authorized client is closed last.
func TestServedConnectionsGoLast(t *testing.T) {
	t.Parallel()
	c := &connections{most: 2}
	pipe := func() net.Conn { a, _ := net.Pipe(); return a }
	first := c.add(pipe()).(*connection)
	second := c.add(pipe()).(*connection)
	first.serve(true)
	first.serve(false)
	third := c.add(pipe()).(*connection)
	if !slices.Equal(c.open, []*connection{first, third}) {
		t.Errorf("open: %v, want first and third of %p %p %p", c.open, first, second, third)
	}
}
