// Package redact keeps secret values out of everything that ralph shows or stores.
//
// A [Secrets] holds the values that are known to be secret. The pool and the command share one: whoever obtains a
// token adds it, and every report, event and log passes through it. It is safe for concurrent use. Credentials of
// well-known shapes are found without being added.
package redact

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ralph-pool/ralph/internal/leak"
)

const (
	// Text replaces a whole text that carries a secret, in reports and records.
	Text = "(redacted: it carries a secret)"
	// Value replaces one secret value in a log.
	Value = "[redacted]"
)

// maxShortLived bounds the values that expire. A service obtains new ones for as long as it runs.
const maxShortLived = 512

// Secrets is a growing set of secret values.
type Secrets struct {
	mu         sync.Mutex
	values     []string     // guarded by mu
	shortLived []string     // guarded by mu; the one added last is the last
	finder     *leak.Finder // guarded by mu; nil when values have changed
}

// New returns Secrets with the values.
func New(values ...string) *Secrets {
	s := &Secrets{}
	s.Add(values...)
	return s
}

// Add adds values for good. Known values cost nothing. Values shorter than 8 bytes are left out, because ordinary text has
// them by chance.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= leak.Shortest && !slices.Contains(s.values, v) {
			s.values, s.finder = append(s.values, v), nil
		}
	}
}

// AddShortLived is Add for values that expire and are replaced, such as tokens: of them the 512 that were added last are kept.
func (s *Secrets) AddShortLived(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < leak.Shortest || slices.Contains(s.values, v) {
			continue
		}
		if i := slices.Index(s.shortLived, v); i >= 0 { // it is in use
			s.shortLived = append(slices.Delete(s.shortLived, i, i+1), v)
			continue
		}
		if len(s.shortLived) == maxShortLived {
			s.shortLived = slices.Delete(s.shortLived, 0, 1)
		}
		s.shortLived, s.finder = append(s.shortLived, v), nil
	}
}

// Finder finds the values as they are now. It is for other packages of this module.
func (s *Secrets) Finder() *leak.Finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finder == nil {
		s.finder = leak.New(slices.Concat(s.values, s.shortLived))
	}
	return s.finder
}

// In reports whether the text, or what a reader sees of it, carries a secret value or a well-known kind of credential.
func (s *Secrets) In(text string) bool {
	f := s.Finder()
	if f.In(text) {
		return true
	}
	seen := visible(text)
	return seen != text && f.In(seen)
}

// Clean returns the text, or Text in its place when it carries a secret.
func (s *Secrets) Clean(text string) string {
	if text != "" && s.In(text) {
		return Text
	}
	return text
}

// Mask returns the text with Value in place of every secret value, for texts of which the rest has to be kept. Where characters
// that no reader sees split a value, they all go.
func (s *Secrets) Mask(text string) string {
	f := s.Finder()
	masked := string(f.Replace([]byte(text), Value))
	seen := visible(masked)
	if again := string(f.Replace([]byte(seen), Value)); again != seen {
		return again
	}
	return masked
}

// visible drops what displays of text drop or do not show, so that nothing in the text comes together only there.
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
