package escapetest

import (
	"fmt"
	"strings"
)

// weakness is an attack that the provider is known not to stop.
type weakness struct {
	text string // part of what the suite says of it
	seen bool
}

// Errorf fails the test, unless a weakness is known that the text tells of.
func (s *suite) Errorf(format string, args ...any) {
	s.Helper()
	text := fmt.Sprintf(format, args...)
	for _, w := range s.weak {
		if strings.Contains(text, w.text) {
			w.seen = true
			s.Logf("known: %s", text)
			return
		}
	}
	s.T.Errorf("%s", text)
}

// weakStill fails the test when a weakness was not seen: the list of them is then wrong.
func (s *suite) weakStill() {
	s.Helper()
	for _, w := range s.weak {
		if !w.seen {
			s.T.Errorf("the provider stops %q, and says that it does not", w.text)
		}
	}
}
