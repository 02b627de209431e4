package loop

import (
	"fmt"
	"io"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// sink is a stream file. Writes never fail: if the file cannot be opened or written (a full disk), that is one warning, and the
// rest is dropped. The work is worth more than its log.
type sink struct {
	name string
	to   io.WriteCloser // nil: discard
	warn func(string)
}

func (r *runner) openSink(name string) *sink {
	s := &sink{name: name, warn: r.warn}
	if r.c.Stream == nil {
		return s
	}
	to, err := r.c.Stream(name)
	if err != nil {
		s.warn(fmt.Sprintf("log %s: %s", name, neutral.Excerpt(err.Error(), 200)))
		return s
	}
	s.to = to
	return s
}

func (s *sink) Write(p []byte) (int, error) {
	if s.to == nil {
		return len(p), nil
	}
	if _, err := s.to.Write(p); err != nil {
		s.warn(fmt.Sprintf("log %s is incomplete: %s", s.name, neutral.Excerpt(err.Error(), 200)))
		_ = s.to.Close()
		s.to = nil
	}
	return len(p), nil
}

func (s *sink) close() {
	if s.to == nil {
		return
	}
	if err := s.to.Close(); err != nil {
		s.warn(fmt.Sprintf("log %s is incomplete: %s", s.name, neutral.Excerpt(err.Error(), 200)))
	}
}
