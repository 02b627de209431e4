// Package lex splits source text of many languages into words, strings and punctuation, and drops comments. It serves the
// search for words of code ([Patterns]) and is not a parser: text that is not a valid program still yields tokens.
// Everything here is safe for concurrent use.
package lex

import (
	"bytes"
	"strings"
)

// Syntax describes the comments and strings of a language. Everything else is code.
type Syntax struct {
	// Spans are kinds of comments and strings. The first that fits counts.
	Spans []Span
	// Templates enables strings in backquotes with code in ${…}.
	Templates bool
	// Regexps enables regular expressions between slashes.
	Regexps bool
	// Lifetimes enables names after a single quote, which also quotes characters.
	Lifetimes bool
	// Heredocs enables texts that begin in the line after <<NAME.
	Heredocs bool
}

// Span is a kind of comment or string.
type Span struct {
	Open, Close string
	Comment     bool
	Escape      bool   // a backslash escapes the next character
	Lines       bool   // may extend over several lines
	Nest        bool   // may contain spans of the same kind
	Apart       bool   // begins only at the start of the text or after white space
	Not         string // text that must not follow Open
}

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Word Kind = iota
	String
	Punctuation // one character
)

// Token is a word, string or punctuation character of a text.
type Token struct {
	Kind       Kind
	Start, End uint32 // byte offsets in the text; for a string without its quotes
}

// Of returns the token's bytes. text must be the text from which the token was read.
func (t Token) Of(text []byte) []byte { return text[t.Start:t.End] }

// lexer splits a text. It never moves back and never repeats a failed search, so its time is linear.
type lexer struct {
	Syntax
	text      []byte
	pos       int
	tokens    []Token
	templates []int // open templates: for each, the number of open braces in its code
	noRegexp  int   // offset before which no regular expression ends
	noHeredoc bool  // no heredoc ends in the rest of the text
}

// Read splits a text in linear time. The text must be shorter than 4 GiB.
func (s Syntax) Read(text []byte) Source {
	l := &lexer{Syntax: s, text: text}
	for l.pos < len(text) {
		l.step()
	}
	return Source{text, l.tokens}
}

func (l *lexer) add(k Kind, start, end int) {
	l.tokens = append(l.tokens, Token{k, uint32(start), uint32(end)}) //nolint:gosec // as Read says
}

func (l *lexer) step() {
	for i := range l.Spans {
		if l.opens(&l.Spans[i]) {
			l.span(&l.Spans[i])
			return
		}
	}
	c := l.text[l.pos]
	switch {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		l.pos++
	case isWord(c):
		start := l.pos
		for l.pos < len(l.text) && isWord(l.text[l.pos]) {
			l.pos++
		}
		l.add(Word, start, l.pos)
	case l.Templates && c == '`':
		l.pos++
		l.template()
	case l.Regexps && c == '/' && l.regexp():
	case l.Lifetimes && c == '\'':
		l.quote()
	case l.Heredocs && c == '<' && l.heredoc():
	default:
		l.punct(c)
	}
}

func (l *lexer) opens(s *Span) bool {
	rest := l.text[l.pos:]
	if len(rest) < len(s.Open) || string(rest[:len(s.Open)]) != s.Open {
		return false
	}
	if s.Not != "" && bytes.HasPrefix(rest[len(s.Open):], []byte(s.Not)) {
		return false
	}
	return !s.Apart || l.pos == 0 || strings.IndexByte(" \t\r\n", l.text[l.pos-1]) >= 0
}

// span reads a comment or string. If it is not closed, it ends with its line or with the text.
func (l *lexer) span(s *Span) {
	l.pos += len(s.Open)
	start, depth := l.pos, 1
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case s.Escape && rest[0] == '\\':
			l.pos = min(l.pos+2, len(l.text))
			continue
		case bytes.HasPrefix(rest, []byte(s.Close)):
			if depth--; depth == 0 {
				end := l.pos
				l.pos += len(s.Close)
				if !s.Comment {
					l.add(String, start, end)
				}
				return
			}
			l.pos += len(s.Close)
			continue
		case s.Nest && bytes.HasPrefix(rest, []byte(s.Open)):
			depth++
			l.pos += len(s.Open)
			continue
		case rest[0] == '\n' && !s.Lines:
			if !s.Comment {
				l.add(String, start, l.pos)
			}
			return
		}
		l.pos++
	}
	if !s.Comment {
		l.add(String, start, len(l.text))
	}
}

// template reads a template up to its end or to code in it.
func (l *lexer) template() {
	start := l.pos
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == '\\':
			l.pos = min(l.pos+2, len(l.text))
			continue
		case c == '`':
			l.add(String, start, l.pos)
			l.pos++
			return
		case c == '$' && l.pos+1 < len(l.text) && l.text[l.pos+1] == '{':
			l.add(String, start, l.pos)
			l.pos += 2
			l.templates = append(l.templates, 0)
			return
		}
		l.pos++
	}
	l.add(String, start, len(l.text))
}

// regexp reads a regular expression, if one may begin here and ends in the same line. Otherwise it returns false.
func (l *lexer) regexp() bool {
	if l.pos < l.noRegexp || !l.operand() {
		return false
	}
	class := false
	for i := l.pos + 1; i < len(l.text) && l.text[i] != '\n'; i++ {
		switch c := l.text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.add(String, l.pos+1, i)
			l.pos = i + 1
			return true
		}
		l.noRegexp = i
	}
	return false
}

// operand reports whether an operand may come next, rather than an operator.
func (l *lexer) operand() bool {
	if len(l.tokens) == 0 {
		return true
	}
	last := l.tokens[len(l.tokens)-1]
	switch text := string(l.text[last.Start:last.End]); last.Kind {
	case Punctuation:
		return !strings.Contains(")]}", text)
	case Word:
		return strings.Contains(" return typeof case in of delete void throw new do else if unless when and or not ",
			" "+text+" ")
	default:
		return false
	}
}

// quote reads a character such as 'a', or the quote of a lifetime such as 'a.
func (l *lexer) quote() {
	rest := l.text[l.pos:min(l.pos+16, len(l.text))]
	end := -1
	switch {
	case len(rest) > 2 && rest[1] == '\\':
		if i := bytes.IndexByte(rest[3:], '\''); i >= 0 {
			end = 3 + i
		}
	case len(rest) > 1:
		i := 2
		for i < len(rest) && rest[i]&0xC0 == 0x80 { // continuation bytes of a UTF-8 character
			i++
		}
		if i < len(rest) && rest[i] == '\'' {
			end = i
		}
	}
	if end < 0 {
		l.pos++
		return
	}
	l.add(String, l.pos+1, l.pos+end)
	l.pos += end + 1
}

// heredoc reads a text that begins in the next line, together with the rest of the line after <<NAME.
func (l *lexer) heredoc() bool {
	const longest = 64 // bytes of the name
	head := string(l.text[l.pos:min(l.pos+longest, len(l.text))])
	name, ok := strings.CutPrefix(head, "<<")
	if !ok || l.noHeredoc {
		return false
	}
	name = strings.TrimLeft(strings.TrimLeft(name, "<-~ "), `'"`)
	if i := strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 || !isWord(byte(r)) }); i >= 0 {
		name = name[:i]
	}
	if name == "" || name[0] >= '0' && name[0] <= '9' || name[0] >= 'a' && name[0] <= 'z' {
		return false
	}
	for i := l.pos; i < len(l.text); {
		next := bytes.IndexByte(l.text[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
		line := bytes.TrimLeft(l.text[i:min(i+4*longest, len(l.text))], " \t")
		if after, ok := bytes.CutPrefix(line, []byte(name)); ok && (len(after) == 0 || !isWord(after[0])) {
			l.add(String, l.pos, i)
			l.pos = len(l.text) - len(l.text[i:]) + bytes.Index(l.text[i:], []byte(name)) + len(name)
			return true
		}
	}
	l.noHeredoc = true
	return false
}

func (l *lexer) punct(c byte) {
	l.pos++
	if n := len(l.templates); n > 0 {
		switch {
		case c == '{':
			l.templates[n-1]++
		case c == '}' && l.templates[n-1] == 0:
			l.templates = l.templates[:n-1]
			l.template()
			return
		case c == '}':
			l.templates[n-1]--
		}
	}
	l.add(Punctuation, l.pos-1, l.pos)
}

// isWord reports whether the byte can be part of a word.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
