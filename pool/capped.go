package pool

import (
	"fmt"
	"io"
)

// streamLimit is how much of one raw stream a run keeps, in bytes; what an agent prints must not fill the disk.
const streamLimit = 64 << 20

// Capped returns a writer that keeps the head of a raw stream, as much as a run keeps, and says at its end how much it
// has left out. It is not for concurrent use.
func Capped(to io.WriteCloser) io.WriteCloser { return &capped{to: to, left: streamLimit} }

// capped writes the head of what it gets, and says at the end how much it has left out.
type capped struct {
	to   io.WriteCloser
	left int64
	lost int64
}

func (c *capped) Write(b []byte) (int, error) {
	keep := min(int64(len(b)), c.left)
	c.left -= keep
	c.lost += int64(len(b)) - keep
	if keep > 0 {
		if n, err := c.to.Write(b[:keep]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func (c *capped) Close() error {
	if c.lost > 0 {
		if _, err := fmt.Fprintf(c.to, "\n[ralph: %d more bytes were not kept]\n", c.lost); err != nil {
			_ = c.to.Close()
			return err
		}
	}
	return c.to.Close()
}

// talkLimit is how many things that the agent says or does in one iteration become events.
const talkLimit = 2000

// talk counts them.
type talk struct {
	iteration, said int
}

// more reports whether another one may become an event, and whether the one that says so is due.
func (t *talk) more(iteration int) (ok, last bool) {
	if iteration != t.iteration {
		*t = talk{iteration: iteration}
	}
	t.said++
	return t.said <= talkLimit, t.said == talkLimit+1
}
