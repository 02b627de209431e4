package lex

import "strings"

// A pattern is a sequence of tokens separated by spaces: "func Test* (". A word that ends in * matches every word with that
// prefix, % matches any word, a " any string, "skip" the string skip, and "skip*" every string with that prefix. A = before a
// token marks the name of a test. A pattern that begins with a word does not match after a dot, where the word would be the name
// of a member.

// element is one token of a pattern.
type element struct {
	text   string
	kind   Kind
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
			e.kind, e.any = Word, true
		case field == `"`:
			e.kind, e.any = String, true
		case field[0] == '"':
			e.kind = String
			e.text, e.prefix = strings.CutSuffix(strings.Trim(field, `"`), "*")
		case isWord(field[0]):
			e.kind = Word
			e.text, e.prefix = strings.CutSuffix(field, "*")
		default:
			e.kind, e.text = Punctuation, field
		}
		p = append(p, e)
	}
	return p
}

func (e element) match(text []byte, t Token) bool {
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

// Source is a text and its tokens.
type Source struct {
	Text   []byte
	Tokens []Token
}

// Is reports whether the token at index i is not a string and has the text. i may be out of range.
func (s Source) Is(i int, text string) bool {
	return i >= 0 && i < len(s.Tokens) && s.Tokens[i].Kind != String && string(s.Tokens[i].Of(s.Text)) == text
}

// Hit is a match: tokens Start up to, but not including, End. Name is the index of the token with the test's name, or -1.
type Hit struct{ Start, End, Name int }

// Patterns are compiled alternatives. They are safe for concurrent use.
type Patterns struct {
	first  map[string][]pattern // by the text of their first token
	open   []pattern            // patterns whose first token matches more than one text
	begins [256]bool            // first bytes of first tokens; rejects most tokens early
}

// Compile compiles patterns.
func Compile(texts []string) *Patterns {
	c := &Patterns{first: map[string][]pattern{}}
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

// Find returns the matches, at most one for each start token.
func (c *Patterns) Find(s Source) []Hit {
	if len(c.first)+len(c.open) == 0 {
		return nil
	}
	var hits []Hit
	for i, t := range s.Tokens {
		if t.Start < t.End && !c.begins[s.Text[t.Start]] {
			continue
		}
		h, ok := s.match(c.first[string(t.Of(s.Text))], i)
		if !ok {
			h, ok = s.match(c.open, i)
		}
		if ok {
			hits = append(hits, h)
		}
	}
	return hits
}

// Has reports whether one of the patterns matches.
func (s Source) Has(texts ...string) bool { return len(Compile(texts).Find(s)) > 0 }

func (s Source) match(patterns []pattern, at int) (Hit, bool) {
next:
	for _, p := range patterns {
		if at+len(p) > len(s.Tokens) || p[0].kind == Word && s.Is(at-1, ".") && !s.Is(at-2, ".") { // a dot, but not the end of an ellipsis
			continue
		}
		h := Hit{at, at + len(p), -1}
		for i, e := range p {
			if !e.match(s.Text, s.Tokens[at+i]) {
				continue next
			}
			if e.name {
				h.Name = at + i
			}
		}
		return h, true
	}
	return Hit{}, false
}
