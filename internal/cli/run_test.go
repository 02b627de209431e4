package cli

import (
	"io"
	"testing"
)

// readFrom tells of the first Read.
type readFrom struct {
	io.Reader
	asked func()
}

func (r readFrom) Read(p []byte) (int, error) {
	r.asked()
	return r.Reader.Read(p)
}

// Ctrl-C ends the wait for a prompt that nobody types.
func TestInterruptWhileThePromptIsRead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	in, keyboard := io.Pipe()
	interrupt := make(chan struct{})
	got := m.run(t, func(h *Host) {
		h.Stdin, h.Interrupt = readFrom{in, func() { close(interrupt) }}, interrupt
	}, "run", "--prompt-file=-", "--sandbox=none", "--agent-command=true")
	if got.status != 130 {
		t.Errorf("got %+v", got)
	}
	if err := keyboard.Close(); err != nil { // the reader ends here, as it would with the process
		t.Error(err)
	}
}
