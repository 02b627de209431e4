package loop

import (
	"io"
	"sync"
)

// merged lets standard output and standard error, which come from a goroutine each, go to one place.
type merged struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (m *merged) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.to.Write(p)
}
