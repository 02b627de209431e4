package suite

import (
	"sync"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// language is an ecosystem with compiled patterns of text.
type language struct {
	ecosystem.Ecosystem
	tests, skips, focus, assertions, main, helpers, maybeTests *lex.Patterns

	shapes []shape
}

type shape struct{ has, with, without *lex.Patterns }

//nolint:gochecknoglobals // read-only table
var languages = sync.OnceValue(func() (all []language) {
	for _, e := range ecosystem.All() {
		l := language{
			Ecosystem:  e,
			tests:      lex.Compile(e.Tests),
			skips:      lex.Compile(e.Skips),
			focus:      lex.Compile(e.Focus),
			assertions: lex.Compile(e.Assertions),
			main:       lex.Compile(e.Main),
			helpers:    lex.Compile(e.Helpers),
			maybeTests: lex.Compile(e.Perhaps),
		}
		for _, s := range e.Shapes {
			l.shapes = append(l.shapes, shape{lex.Compile(s.Has), lex.Compile(s.With), lex.Compile(s.Without)})
		}
		all = append(all, l)
	}
	return all
})

// sourceOf returns the ecosystem whose language the file is written in, or the generic one for unknown files.
func sourceOf(file string) (l language) {
	for _, l = range languages() {
		if match.Any(l.Sources, file) {
			return l
		}
	}
	return l
}
