package pool

import (
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/internal/leak"
)

// Secrets are the values that must get neither into reports, requests, events and logs, nor out with an agent's commits.
// They grow while ralph works: whoever obtains a token adds it. It is safe for concurrent use.
//
// Credentials of well-known shapes are held back without being added.
type Secrets struct {
	mu     sync.Mutex
	values []string     // oldest first
	finder *leak.Finder // nil when values have changed
}

// maxSecrets bounds the values. A service obtains new tokens for as long as it runs, and the old ones end by themselves.
const maxSecrets = 512

// NewSecrets returns Secrets with the values.
func NewSecrets(values ...string) *Secrets {
	s := &Secrets{}
	s.Add(values...)
	return s
}

// Add adds values. What is known already costs nothing; values shorter than 8 bytes are left out, because ordinary text
// has them by chance.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < leak.Shortest || slices.Contains(s.values, v) {
			continue
		}
		if len(s.values) == maxSecrets {
			s.values = slices.Delete(s.values, 0, 1)
		}
		s.values, s.finder = append(s.values, v), nil
	}
}

// look is what finds them, as they are now.
func (s *Secrets) look() *leak.Finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finder == nil {
		s.finder = leak.New(s.values)
	}
	return s.finder
}
