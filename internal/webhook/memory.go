package webhook

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// remembered is the number of deliveries remembered per project.
const remembered = 1000

// seenDeliveries remembers the latest deliveries of a project by their ids and by their bodies, because a signature may not cover
// the id. It is safe for concurrent use.
type seenDeliveries struct {
	mu    sync.Mutex
	order [][sha256.Size]byte        // guarded by mu; the latest last
	known map[[sha256.Size]byte]bool // guarded by mu
}

// add remembers a delivery and reports whether it is new.
func (m *seenDeliveries) add(id string, body []byte) (fresh bool) {
	hashes := [][sha256.Size]byte{sha256.Sum256(append([]byte("body\n"), body...))}
	if id != "" {
		hashes = append(hashes, sha256.Sum256([]byte("id\n"+id)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(hashes, func(h [sha256.Size]byte) bool { return m.known[h] }) {
		return false
	}
	for _, h := range hashes {
		m.known[h] = true
		m.order = append(m.order, h)
	}
	for len(m.order) > 2*remembered {
		delete(m.known, m.order[0])
		m.order = m.order[1:]
	}
	return true
}
