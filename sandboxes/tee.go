package sandboxes

import (
	"io"
	"sync"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Tee returns the command with its output also written to out and errs, whose writes must not fail. After a writer of cmd
// has failed, it is not called again. A writer for both outputs is still called by one goroutine at a time.
func Tee(cmd Command, out, errs io.Writer) Command {
	first, second := new(sync.Mutex), new(sync.Mutex)
	if proc.Same(cmd.Stdout, cmd.Stderr) {
		second = first
	}
	cmd.Stdout, cmd.Stderr = &tee{log: out, mu: first, to: cmd.Stdout}, &tee{log: errs, mu: second, to: cmd.Stderr}
	return cmd
}

type tee struct {
	log io.Writer
	mu  *sync.Mutex
	to  io.Writer // guarded by mu; nil: there was none, or it failed
}

func (t *tee) Write(p []byte) (int, error) {
	_, _ = t.log.Write(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		if _, err := t.to.Write(p); err != nil {
			t.to = nil
		}
	}
	return len(p), nil
}
