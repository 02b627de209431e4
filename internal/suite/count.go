package suite

import (
	"slices"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// maxText is the maximum number of bytes of a file that are read.
const maxText = 1 << 20

// Tests counts the tests of a file, as far as the text shows them. Each test function or case counts once, however many
// inputs it has.
type Tests struct {
	// Tests includes skipped tests.
	Tests int
	// Skipped counts marks and calls that skip tests or expect them to fail, tests with an empty body, and all tests of a
	// file that the tools ignore.
	Skipped int
	// Focused counts marks that exclude all other tests.
	Focused int
	// Assertions counts calls that can make a test fail.
	Assertions int
	// Unread means that the file is too large to read: all counts are 0.
	Unread bool
}

// Count counts the tests of a file. All counts are 0 if the path is not that of a test file. Comments and strings do not count.
func Count(file string, text []byte) Tests {
	s := examine(file, text)
	if s.helper {
		return Tests{}
	}
	return s.Tests
}

// HoldsTests reports whether the file is a test file with at least one test in a known language.
func HoldsTests(file string, text []byte) bool {
	role, _ := RoleOf(file, nil)
	return role == ecosystem.Test && len(sourceOf(file).Tests) > 0 && Count(file, text).Tests > 0
}

// HasInline reports whether the file's language also allows tests among the code.
func HasInline(file string) bool { return sourceOf(file).Inline }

// source is a tokenised text.
type source struct{ lex.Source }

// textFacts has the facts that a file's text shows.
type textFacts struct {
	Tests
	names  map[string]int // number of tests by name
	checks map[string]int // number of assertions by the name of the test before them; "": before the first test
	shapes []int          // counts by index in the ecosystem's Shapes
	inline string         // text from the first test on
	main   bool           // the file is a program
	helper bool           // the text, not the path, shows that it is a helper of tests
}

func examine(file string, text []byte) textFacts {
	e := sourceOf(file)
	if len(text) > maxText {
		return textFacts{Tests: Tests{Unread: true}}
	}
	s := source{e.Syntax.Read(text)}
	out := textFacts{names: map[string]int{}, checks: map[string]int{}, main: isProgram(e, file, s)}
	for i, shape := range e.shapes {
		n := len(shape.has.Find(s.Source))
		if n > 0 && (len(e.Shapes[i].With) > 0 && len(shape.with.Find(s.Source)) == 0 || len(shape.without.Find(s.Source)) > 0) {
			n = 0
		}
		out.shapes = append(out.shapes, n)
	}
	role, _ := RoleOf(file, nil)
	out.helper = role == ecosystem.None && (len(e.helpers.Find(s.Source)) > 0 || match.Any(e.PerhapsFiles, file) && len(e.maybeTests.Find(s.Source)) > 0)
	if role != ecosystem.Test && !e.Inline && !out.helper { // no tool runs tests in such a file
		return out
	}
	tests := e.tests.Find(s.Source)
	out.Skipped = len(e.skips.Find(s.Source))
	out.Focused = len(e.focus.Find(s.Source))
	checks := e.assertions.Find(s.Source)
	out.Assertions = len(checks)
	last, name := 0, ""
	for i, t := range tests {
		end := len(s.Tokens)
		if i+1 < len(tests) {
			end = tests[i+1].Start
		}
		next, ok := s.nameOf(t, end)
		if !ok && end < len(s.Tokens) {
			continue // an annotation of the next test, which a pattern matches as well
		}
		for ; last < len(checks) && checks[last].Start < t.Start; last++ {
			out.checks[name]++
		}
		name = next
		out.names[name]++
		out.Tests.Tests++
		if s.idle(e.Body, t.End, end) {
			out.Skipped++
		}
	}
	out.checks[name] += len(checks) - last
	if len(tests) > 0 {
		out.inline = string(text[s.Tokens[tests[0].Start].Start:])
		if e.Excluded != nil && e.Excluded(file, text) {
			out.Skipped = max(out.Skipped, len(tests))
		}
	}
	return out
}

// isProgram reports whether the file is a program, which may end the process.
func isProgram(e language, file string, s source) bool {
	return len(s.Text) > 1 && string(s.Text[:2]) == "#!" || match.Any(e.MainFiles, file) || len(e.main.Find(s.Source)) > 0
}

// nameOf returns the name of the test: the token that the pattern marks, or else the name of the function after it. It
// returns false for an annotation without a function after it.
func (s source) nameOf(t lex.Hit, end int) (string, bool) {
	if t.Name >= 0 {
		return string(s.Tokens[t.Name].Of(s.Text)), true
	}
	for i := t.End; i+1 < end; i++ {
		if s.Is(i, "fn") || s.Is(i, "fun") || s.Is(i, "function") {
			for i++; i+1 < end && s.Tokens[i].Kind != lex.Word; i++ { // a quote
			}
			return string(s.Tokens[i].Of(s.Text)), true
		}
		annotation := s.Is(i-1, "@") || s.Is(i-1, "[") || s.Is(i-1, ",")
		if s.Tokens[i].Kind == lex.Word && s.Is(i+1, "(") && !annotation {
			return string(s.Tokens[i].Of(s.Text)), true
		}
	}
	return "", s.Tokens[t.Start].Kind == lex.Word
}

// idle reports whether the body of a test, between the tokens, is empty or returns at once.
func (s source) idle(body ecosystem.Body, from, end int) bool {
	switch body {
	case ecosystem.Indent:
		return s.idleBlock(from, end)
	case ecosystem.End:
		for from < end && (s.Is(from, "(") || s.Is(from, ")") || s.Is(from, "do")) {
			from++
		}
		return from < end && s.Is(from, "end") || s.Is(from, "return")
	}
	for i := from; i < end; i++ {
		// After these a { begins an object or the values of an annotation, not the body.
		value := s.Is(i-1, "(") || s.Is(i-1, "[") || s.Is(i-1, ",") || s.Is(i-1, "=") || s.Is(i-1, ":")
		if !s.Is(i, "{") || value {
			continue
		}
		if s.Is(i+1, "}") {
			return true
		}
		if !s.Is(i+1, "return") {
			return false
		}
		return i+2 >= len(s.Tokens) || s.Is(i+2, ";") || s.Is(i+2, "}") || s.newLine(i+2)
	}
	return false
}

// idleBlock is idle for a body that is an indented block after the parameters and a colon.
func (s source) idleBlock(from, end int) bool {
	depth := 1 // of brackets, within the parameters
	for ; from < end; from++ {
		switch {
		case s.Is(from, "(") || s.Is(from, "["):
			depth++
		case s.Is(from, ")") || s.Is(from, "]"):
			depth--
		}
		if depth == 0 && s.Is(from, ":") {
			break
		}
	}
	for from++; from < end && s.Tokens[from].Kind == lex.String; from++ { // docstrings
	}
	return from < end && (s.Is(from, "pass") || s.Is(from, "return") || s.Is(from, ".") && s.Is(from+1, "."))
}

// newLine reports whether the token is the first in its line.
func (s source) newLine(i int) bool {
	return slices.Contains(s.Text[s.Tokens[i-1].End:s.Tokens[i].Start], '\n')
}
