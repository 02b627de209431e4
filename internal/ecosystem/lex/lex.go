// Package lex splits source text of many languages into words, strings and punctuation, and leaves comments out. It is made for
// looking for words of code ([Patterns]), not for parsing: of a text that is no valid program it makes what it can. Everything here is safe for
// concurrent use.
package lex

import (
	"bytes"
	"strings"
)

// Syntax says what in a language is comment, string or code.
type Syntax struct {
	// Spans are comments and strings. Of several that fit the first counts.
	Spans []Span
	// Templates are strings in backquotes with code in ${…}.
	Templates bool
	// Regexps are regular expressions between slashes.
	Regexps bool
	// Lifetimes are names after a single quote, which is a character's quote too.
	Lifetimes bool
	// Heredocs are texts that begin in the line after <<NAME.
	Heredocs bool
}

// Span is a kind of comment or string.
type Span struct {
	Open, Close string
	Comment     bool
	Escape      bool   // a backslash takes the next character with it
	Lines       bool   // goes over the end of a line
	Nest        bool   // holds others of its kind
	Apart       bool   // begins only after a space or a line's end
	Not         string // what must not follow Open
}

// Kind is what a token is.
type Kind uint8

// The kinds of tokens.
const (
	Word Kind = iota
	String
	Punctuation // one character
)

// Token is a piece of a text.
type Token struct {
	Kind       Kind
	Start, End uint32 // bytes in the text; of a string: without its quotes
}

// Of is the token's part of the text that it was read from.
func (t Token) Of(text []byte) []byte { return text[t.Start:t.End] }

// lexer splits a text. Each step goes forward, and a search that failed is not made again, so that the time is linear.
type lexer struct {
	Syntax
	text      []byte
	at        int
	tokens    []Token
	templates []int // open templates, each with the braces that are open in its code
	noRegexp  int   // before here no regular expression is closed
	noHeredoc bool  // none is closed any more
}

// Read splits a text, in time that grows with its length. The text is shorter than 4 GiB.
func (s Syntax) Read(text []byte) Source {
	l := &lexer{Syntax: s, text: text}
	for l.at < len(text) {
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
	c := l.text[l.at]
	switch {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		l.at++
	case isWord(c):
		start := l.at
		for l.at < len(l.text) && isWord(l.text[l.at]) {
			l.at++
		}
		l.add(Word, start, l.at)
	case l.Templates && c == '`':
		l.at++
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
	rest := l.text[l.at:]
	if len(rest) < len(s.Open) || string(rest[:len(s.Open)]) != s.Open {
		return false
	}
	if s.Not != "" && bytes.HasPrefix(rest[len(s.Open):], []byte(s.Not)) {
		return false
	}
	return !s.Apart || l.at == 0 || strings.IndexByte(" \t\r\n", l.text[l.at-1]) >= 0
}

// span takes a comment or string. One that is not closed goes to the end of its line or of the text.
func (l *lexer) span(s *Span) {
	l.at += len(s.Open)
	start, depth := l.at, 1
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case s.Escape && rest[0] == '\\':
			l.at = min(l.at+2, len(l.text))
			continue
		case bytes.HasPrefix(rest, []byte(s.Close)):
			if depth--; depth == 0 {
				end := l.at
				l.at += len(s.Close)
				if !s.Comment {
					l.add(String, start, end)
				}
				return
			}
			l.at += len(s.Close)
			continue
		case s.Nest && bytes.HasPrefix(rest, []byte(s.Open)):
			depth++
			l.at += len(s.Open)
			continue
		case rest[0] == '\n' && !s.Lines:
			if !s.Comment {
				l.add(String, start, l.at)
			}
			return
		}
		l.at++
	}
	if !s.Comment {
		l.add(String, start, len(l.text))
	}
}

// template takes a template's text up to its end or to the code in it.
func (l *lexer) template() {
	start := l.at
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\\':
			l.at = min(l.at+2, len(l.text))
			continue
		case c == '`':
			l.add(String, start, l.at)
			l.at++
			return
		case c == '$' && l.at+1 < len(l.text) && l.text[l.at+1] == '{':
			l.add(String, start, l.at)
			l.at += 2
			l.templates = append(l.templates, 0)
			return
		}
		l.at++
	}
	l.add(String, start, len(l.text))
}

// regexp takes a regular expression, where one may stand and is closed in its line.
func (l *lexer) regexp() bool {
	if l.at < l.noRegexp || !l.operand() {
		return false
	}
	class := false
	for i := l.at + 1; i < len(l.text) && l.text[i] != '\n'; i++ {
		switch c := l.text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			l.add(String, l.at+1, i)
			l.at = i + 1
			return true
		}
		l.noRegexp = i
	}
	return false
}

// operand reports whether an operand, and not an operator, comes next.
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

// quote takes a character such as 'a', or the quote of a lifetime such as 'a.
func (l *lexer) quote() {
	rest := l.text[l.at:min(l.at+16, len(l.text))]
	end := -1
	switch {
	case len(rest) > 2 && rest[1] == '\\':
		if i := bytes.IndexByte(rest[3:], '\''); i >= 0 {
			end = 3 + i
		}
	case len(rest) > 1:
		i := 2
		for i < len(rest) && rest[i]&0xC0 == 0x80 { // the rest of a character of several bytes
			i++
		}
		if i < len(rest) && rest[i] == '\'' {
			end = i
		}
	}
	if end < 0 {
		l.at++
		return
	}
	l.add(String, l.at+1, l.at+end)
	l.at += end + 1
}

// heredoc takes a text that begins in the next line. What follows <<NAME in the same line is taken with it.
func (l *lexer) heredoc() bool {
	const longest = 64 // bytes of a name
	head := string(l.text[l.at:min(l.at+longest, len(l.text))])
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
	for i := l.at; i < len(l.text); {
		next := bytes.IndexByte(l.text[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
		line := bytes.TrimLeft(l.text[i:min(i+4*longest, len(l.text))], " \t")
		if after, ok := bytes.CutPrefix(line, []byte(name)); ok && (len(after) == 0 || !isWord(after[0])) {
			l.add(String, l.at, i)
			l.at = len(l.text) - len(l.text[i:]) + bytes.Index(l.text[i:], []byte(name)) + len(name)
			return true
		}
	}
	l.noHeredoc = true
	return false
}

func (l *lexer) punct(c byte) {
	l.at++
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
	l.add(Punctuation, l.at-1, l.at)
}

// isWord reports a byte of which words are made.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
