package ecosystem

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

// A pattern of text is a sequence of tokens with spaces between them: "func Test* (". A word that ends in * matches
// every word that begins so, % matches any word, a " any string, and "skip" the string skip. A = before a token marks
// the name of a test. A pattern that begins with a word does not match after a dot, where the word is a member's name.

// element is one token of a pattern.
type element struct {
	text   string
	kind   lex.Kind
	prefix bool
	any    bool
	name   bool
}

type pattern []element

func parse(text string) pattern {
	var p pattern
	for field := range strings.FieldsSeq(text) {
		var e element
		if rest, ok := strings.CutPrefix(field, "="); ok && rest != "" {
			e.name, field = true, rest
		}
		switch {
		case field == "%":
			e.kind, e.any = lex.Word, true
		case field == `"`:
			e.kind, e.any = lex.String, true
		case field[0] == '"':
			e.kind, e.text = lex.String, strings.Trim(field, `"`)
		case lex.IsWord(field[0]):
			e.kind = lex.Word
			e.text, e.prefix = strings.CutSuffix(field, "*")
		default:
			e.kind, e.text = lex.Punctuation, field
		}
		p = append(p, e)
	}
	return p
}

func (e element) match(text []byte, t lex.Token) bool {
	if e.kind != t.Kind {
		return false
	}
	if e.any {
		return true
	}
	if e.prefix {
		return len(e.text) <= int(t.End-t.Start) && string(text[t.Start:int(t.Start)+len(e.text)]) == e.text
	}
	return string(text[t.Start:t.End]) == e.text
}

// source is a text and its tokens.
type source struct {
	text   []byte
	tokens []lex.Token
}

// is reports whether the token at i, which may be none, has the text.
func (s source) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].Kind != lex.String && string(s.tokens[i].Of(s.text)) == text
}

// hit is a match: the tokens from start to before end, and the one with a test's name, or -1.
type hit struct{ start, end, name int }

// patterns are alternatives, compiled.
type patterns struct {
	first  map[string][]pattern // by the text of the first token
	open   []pattern            // whose first token has no one text
	begins [256]bool            // the bytes with which a first token begins; most tokens are passed over by them
}

func compile(texts []string) *patterns {
	c := &patterns{first: map[string][]pattern{}}
	for _, text := range texts {
		p := parse(text)
		if p[0].any || p[0].prefix {
			c.open = append(c.open, p)
		} else {
			c.first[p[0].text] = append(c.first[p[0].text], p)
		}
		if p[0].any {
			for b := range c.begins {
				c.begins[b] = true
			}
		} else if p[0].text != "" {
			c.begins[p[0].text[0]] = true
		}
	}
	return c
}

// find returns the matches, at most one at each token.
func (c *patterns) find(s source) []hit {
	if len(c.first)+len(c.open) == 0 {
		return nil
	}
	var hits []hit
	for i, t := range s.tokens {
		if t.Start < t.End && !c.begins[s.text[t.Start]] {
			continue
		}
		h, ok := s.match(c.first[string(t.Of(s.text))], i)
		if !ok {
			h, ok = s.match(c.open, i)
		}
		if ok {
			hits = append(hits, h)
		}
	}
	return hits
}

// has reports whether one of the patterns matches.
func (s source) has(texts ...string) bool { return len(compile(texts).find(s)) > 0 }

// compiled are the patterns of an ecosystem.
type compiled struct {
	tests, skips, focus, assertions, main, helpers, perhaps *patterns

	shapes []compiledShape
}

type compiledShape struct{ has, with, without *patterns }

func (e *Ecosystem) compile() {
	e.compiled = compiled{tests: compile(e.Tests), skips: compile(e.Skips), focus: compile(e.Focus),
		assertions: compile(e.Assertions),
		main:       compile(e.Main), helpers: compile(e.Helpers), perhaps: compile(e.Perhaps)}
	for _, s := range e.Shapes {
		e.compiled.shapes = append(e.compiled.shapes, compiledShape{compile(s.Has), compile(s.With), compile(s.Without)})
	}
}

func (s source) match(patterns []pattern, at int) (hit, bool) {
next:
	for _, p := range patterns {
		if at+len(p) > len(s.tokens) || p[0].kind == lex.Word && s.is(at-1, ".") && !s.is(at-2, ".") { // but after an ellipsis
			continue
		}
		h := hit{at, at + len(p), -1}
		for i, e := range p {
			if !e.match(s.text, s.tokens[at+i]) {
				continue next
			}
			if e.name {
				h.name = at + i
			}
		}
		return h, true
	}
	return hit{}, false
}
