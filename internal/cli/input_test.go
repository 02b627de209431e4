package cli

import (
	"io"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// reads calls begun at each Read.
type reads struct {
	io.Reader
	begun func()
}

func (r reads) Read(b []byte) (int, error) {
	r.begun()
	return r.Reader.Read(b)
}

// TestInputEndsAtInterrupt checks that commands that wait for standard input end when the user interrupts them.
func TestInputEndsAtInterrupt(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"new":   {"new", "Title", "--body", "-"},
		"login": {"sandbox", "login", "--stdin", "github"},
		"run":   {"run", "--prompt-file", "-", "--sandbox=none", "--agent-command=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/backlog/.keep", "")
			m.commit(t)
			in, typed := io.Pipe()
			defer typed.Close()
			interrupt := make(chan struct{})
			got := m.run(t, func(h *compose.Host) {
				h.Stdin, h.Interrupt = reads{in, sync.OnceFunc(func() { close(interrupt) })}, interrupt
			}, args...)
			if got.status != exit.Interrupted {
				t.Errorf("%+v", got)
			}
		})
	}
}
