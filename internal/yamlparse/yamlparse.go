// Package yamlparse parses YAML from untrusted sources. Its function is pure.
//
// The parser of goccy/go-yaml takes time and memory quadratic in the nesting depth, and can panic. Parse rejects deeply nested
// text first, and turns a panic into an error. The caller must limit the size: mappings with very many keys are slow, too.
package yamlparse

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// deepest is the maximum depth of nested brackets, and of list and key indicators in one line.
const deepest = 64

// Error is a syntax error with its line.
type Error struct {
	Line int // from 1
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Parse parses a text. An error is an *Error.
func Parse(src []byte, options ...parser.Option) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{1, fmt.Sprintf("the parser gave up: %v", p)}
		}
	}()
	if line := tooDeep(src); line > 0 {
		return nil, &Error{line, fmt.Sprintf("more than %d levels stand inside each other", deepest)}
	}
	file, err = parser.ParseBytes(src, 0, options...)
	if err == nil {
		return file, nil
	}
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
		text := strings.ReplaceAll(syntax.GetMessage(), "character '\t'", "a tab")
		text = strings.Join(strings.Fields(text), " ")
		if key, _, found := strings.Cut(text, " already defined at ["); found && strings.HasPrefix(text, "mapping key ") {
			text = key + " is there twice" // the message's own position is relative to this text, not to the file
		}
		line := syntax.GetToken().Position.Line
		if at, bracket := unclosed(src); strings.HasSuffix(text, " must be specified") && at > 0 && at <= line {
			line, text = at, fmt.Sprintf("the %c has no %c after it", bracket, bracket+2)
		}
		return nil, &Error{line, text}
	}
	return nil, &Error{1, strings.SplitN(err.Error(), "\n", 2)[0]}
}

// unclosed returns the last unclosed bracket and its line, or 0. The parser reports a line after it.
func unclosed(src []byte) (line int, bracket byte) {
	type place struct {
		line int
		c    byte
	}
	var open []place
	number := 0
	for text := range bytes.Lines(src) {
		number++
		for _, c := range text {
			switch c {
			case '[', '{':
				open = append(open, place{number, c})
			case ']', '}':
				open = open[:max(0, len(open)-1)]
			}
		}
	}
	if len(open) == 0 {
		return 0, 0
	}
	last := open[len(open)-1]
	return last.line, last.c
}

// tooDeep returns the first line that is nested too deeply, or 0. Brackets in strings count, too: real strings do not
// contain so many unclosed ones.
func tooDeep(src []byte) int {
	open, number := 0, 0
	for line := range bytes.Lines(src) {
		number++
		signs := 0
		for rest := bytes.TrimLeft(line, " "); len(rest) > 1 && bytes.IndexByte([]byte("-?:"), rest[0]) >= 0 && rest[1] == ' '; {
			signs++
			rest = bytes.TrimLeft(rest[1:], " ")
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open > deepest || signs > deepest {
				return number
			}
		}
	}
	return 0
}
