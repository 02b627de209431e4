package proc

import (
	"io"
	"sync"
)

// Merged lets standard output and standard error, which come from a goroutine each, go to one place.
type Merged struct {
	To io.Writer

	mu sync.Mutex // one Write at a time
}

// Write writes to To.
func (m *Merged) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.To.Write(p)
}
