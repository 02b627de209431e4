// Package redact keeps secret values out of everything that ralph shows or stores.
//
// A [Secrets] holds the known secret values. The pool and the command share one: whoever obtains a token adds it, and every
// report, event and log is filtered by it. It is safe for concurrent use. It also finds credentials of well-known formats
// that were not added.
package redact

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ralph-pool/ralph/internal/leak"
)

const (
	// Text replaces a whole text that contains a secret, in reports and records.
	Text = "(redacted: it contains a secret)"
	// Value replaces one secret value in a log.
	Value = "[redacted]"
)

// maxShortLived is the number of expiring values that are kept. A service obtains new ones as long as it runs.
const maxShortLived = 512

// Secrets is a growing set of secret values.
type Secrets struct {
	mu         sync.Mutex
	values     []string     // guarded by mu
	shortLived []string     // guarded by mu; the last one added is last
	finder     *leak.Finder // guarded by mu; nil if values have changed
	commit     string       // guarded by mu; the last one of AddPublic
	public     []string     // guarded by mu; values that its files contain
}

// New returns Secrets with these values.
func New(values ...string) *Secrets {
	s := &Secrets{}
	s.Add(values...)
	return s
}

// Add adds permanent values. It ignores known values, and values shorter than 8 bytes, which ordinary text contains by
// chance.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= leak.Shortest && !slices.Contains(s.values, v) {
			s.values, s.finder = append(s.values, v), nil
		}
	}
}

// AddShortLived is Add for values that expire and are replaced, such as tokens. The last 512 are kept.
func (s *Secrets) AddShortLived(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < leak.Shortest || slices.Contains(s.values, v) {
			continue
		}
		if i := slices.Index(s.shortLived, v); i >= 0 { // still in use: make it the latest
			s.shortLived = append(slices.Delete(s.shortLived, i, i+1), v)
			continue
		}
		if len(s.shortLived) == maxShortLived {
			s.shortLived = slices.Delete(s.shortLived, 0, 1)
		}
		s.shortLived, s.finder = append(s.shortLived, v), nil
	}
}

// Unknown returns the values that were not added, or that are no longer kept.
func (s *Secrets) Unknown(values []string) (unknown []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if trimmed := strings.TrimSpace(v); !slices.Contains(s.values, trimmed) && !slices.Contains(s.shortLived, trimmed) {
			unknown = append(unknown, v)
		}
	}
	return unknown
}

// AddPublic says that the files of a commit contain these values, so that they are no secrets. Only the last commit is remembered.
func (s *Secrets) AddPublic(commit string, values []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commit != commit {
		s.commit, s.public = commit, nil
	}
	s.public = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.public, values))))
}

// Public returns the values that were added for the commit.
func (s *Secrets) Public(commit string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commit != commit {
		return nil
	}
	return slices.Clone(s.public)
}

// Finder returns a finder of the present values. It is for other packages of this module.
func (s *Secrets) Finder() *leak.Finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finder == nil {
		s.finder = leak.New(slices.Concat(s.values, s.shortLived))
	}
	return s.finder
}

// In reports whether the text, or its visible part, contains a secret value or a credential of a well-known format.
func (s *Secrets) In(text string) bool {
	f := s.Finder()
	if f.In(text) {
		return true
	}
	seen := visible(text)
	return seen != text && f.In(seen)
}

// Clean returns the text, or Text if it contains a secret.
func (s *Secrets) Clean(text string) string {
	if text != "" && s.In(text) {
		return Text
	}
	return text
}

// Mask replaces every secret value in the text by Value, for texts whose rest must stay. If invisible characters split a
// value, it removes all invisible characters.
func (s *Secrets) Mask(text string) string {
	f := s.Finder()
	masked := string(f.Replace([]byte(text), Value))
	seen := visible(masked)
	if again := string(f.Replace([]byte(seen), Value)); again != seen {
		return again
	}
	return masked
}

// visible removes the characters that displays drop or do not show, so that no secret appears only when the text is shown.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), r == unicode.ReplacementChar, r >= 0xe0000 && r <= 0xe0fff,
			unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, text)
}
