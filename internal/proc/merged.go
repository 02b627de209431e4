package proc

import (
	"io"
	"sync"
)

// Merged is a writer that several goroutines may share, such as those of standard output and standard error.
type Merged struct {
	To io.Writer

	mu sync.Mutex // held during a Write
}

// Write implements io.Writer.
func (m *Merged) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.To.Write(p)
}
