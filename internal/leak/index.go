package leak

import "slices"

// index finds patterns in texts.
type index struct {
	fold *[256]byte // maps each byte to its folded form; 0: ignored
	// decode returns the byte for which the text's first bytes stand, and their number; zero if the text ends within them. nil: each
	// byte stands for itself.
	decode func(text []byte) (c byte, size int)
	// byPrefix maps the first Shortest bytes of patterns to the patterns, and each shorter prefix to nil. bloom is a Bloom
	// filter of the full keys, and much faster.
	byPrefix map[uint64][]string
	bloom    []bool
	// longest is the length of the longest pattern in bytes.
	longest int
}

const bloomBits = 14

func newIndex(fold *[256]byte, decode func([]byte) (byte, int)) index {
	return index{fold: fold, decode: decode, byPrefix: map[uint64][]string{}, bloom: make([]bool, 1<<bloomBits)}
}

func hash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> (64 - bloomBits) }

// add adds the folded text as a pattern, unless it is too short.
func (x *index) add(text string) {
	var pattern []byte
	for rest := []byte(text); len(rest) > 0; {
		c, size := x.next(rest)
		if c = x.fold[c]; c != 0 {
			pattern = append(pattern, c)
		}
		rest = rest[max(size, 1):]
	}
	if len(pattern) < Shortest {
		return
	}
	x.longest = max(x.longest, len(pattern))
	var key uint64
	for _, c := range pattern[:Shortest-1] {
		key = key<<8 | uint64(c)
		x.byPrefix[key] = nil // shorter keys have no patterns
	}
	key = key<<8 | uint64(pattern[Shortest-1])
	x.bloom[hash(key)] = true
	if !slices.Contains(x.byPrefix[key], string(pattern)) {
		x.byPrefix[key] = append(x.byPrefix[key], string(pattern))
	}
}

// next returns the first byte of the text, or the byte that the code there stands for, and its size in the text; size zero
// if the text ends within the code.
func (x *index) next(text []byte) (c byte, size int) {
	if c = text[0]; x.decode == nil || c != '%' && c != '\\' && c != '&' {
		return c, 1
	}
	return x.decode(text)
}

// escape decodes %41, \x41, \u0041, \101, \0101, and \n, \r and \t, which all count as a line end. A backslash before
// anything else is a plain byte.
func escape(text []byte) (c byte, size int) {
	if text[0] == '&' {
		return '&', 1
	}
	lead, size := 1, 3
	if text[0] == '\\' {
		if len(text) == 1 {
			return 0, 0
		}
		lead, size = 2, 4
		switch text[1] {
		case 'n', 'r', 't':
			return '\n', 2
		case 'u':
			size = 6
		case 'x':
		case '0', '1', '2', '3':
			return octal(text)
		default:
			return '\\', 1
		}
	}
	for i := lead; i < size; i++ {
		if i == len(text) {
			return 0, 0
		}
		if !hexes[text[i]] {
			return text[0], 1
		}
		c = c<<4 | nibble(text[i]) // of \u0041, the last two digits remain
	}
	return c, size
}

// octal decodes \101, as in programming languages, and \0101, as in shells.
func octal(text []byte) (c byte, size int) {
	size = 4
	if len(text) > 2 && text[1] == '0' && text[2] <= '3' {
		size = 5
	}
	for i := 1; i < size; i++ {
		if i == len(text) {
			return 0, 0
		}
		if text[i] < '0' || text[i] > '7' {
			if i == 4 { // \0dd has three digits in all
				return c, i
			}
			return '\\', 1
		}
		c = c<<3 | text[i]&7
	}
	return c, size
}

// nibble returns the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0x0f + 9
}

// find returns the positions of patterns in the text. If more text may follow (last is false), find stops where a pattern
// begins that may continue there, and returns that position in open; otherwise open is the end of the text.
func (x *index) find(text []byte, last bool) (spans []span, open int) {
	open = len(text)
	if len(x.byPrefix) == 0 {
		return nil, open
	}
	var (
		key   uint64        // the last folded bytes
		at    [Shortest]int // their positions
		n     int           // their number
		empty gap
	)
	for i, size := 0, 0; i < len(text); i += size {
		var c byte
		if c, size = x.next(text[i:]); size == 0 {
			open = i
			break
		}
		counts := x.fold[c]
		if counts == 0 {
			if empty.ends(c) {
				key, n = 0, 0
			}
			continue
		}
		empty = gap{}
		key = key<<8 | uint64(counts)
		at[n%Shortest] = i
		if n++; !x.bloom[hash(key)] {
			continue
		}
		from, to := at[n%Shortest], 0
		for _, pattern := range x.byPrefix[key] {
			end, more := x.match(text[from:], pattern)
			if more && !last {
				return spans, from
			}
			to = max(to, end)
		}
		if to > 0 {
			spans = append(spans, span{from, from + to})
		}
	}
	for short := min(n, Shortest-1); short > 0; short-- {
		if _, ok := x.byPrefix[key&(1<<(8*short)-1)]; ok {
			return spans, min(open, at[(n-short)%Shortest])
		}
	}
	return spans, open
}

// match returns the end of the pattern if the text begins with it. more means that the text is too short to decide.
func (x *index) match(text []byte, pattern string) (end int, more bool) {
	var empty gap
	for i, size := 0, 0; i < len(text); i += size {
		var c byte
		if c, size = x.next(text[i:]); size == 0 {
			return 0, true
		}
		switch counts := x.fold[c]; {
		case counts == 0:
			if empty.ends(c) {
				return 0, false
			}
		case counts != pattern[0]:
			return 0, false
		case len(pattern) == 1:
			return i + size, false
		default:
			pattern, empty = pattern[1:], gap{}
		}
	}
	return 0, true
}

// gap is the ignored text between two bytes of a pattern.
type gap struct{ size, lines int }

// longestGap, in bytes, covers a line end, the indentation of the next line, and quotes and operators of string literals.
const longestGap = 64

// ends adds a byte to the gap, and reports whether the gap is too long for a pattern. No pattern spans an empty line: it
// ends an event of a stream.
func (g *gap) ends(c byte) bool {
	g.size++
	if c == '\n' {
		g.lines++
	}
	return g.lines > 1 || g.size > longestGap
}

//nolint:gochecknoglobals // tables, never written
var (
	// identityFold keeps every byte, but maps 0 to 0xff, which occurs in no text.
	identityFold = func() (t [256]byte) {
		for i := range t {
			t[i] = byte(i)
		}
		t[0] = 0xff
		return t
	}()
	// lettersOnly keeps digits, letters in lower case, and non-ASCII bytes.
	lettersOnly = func() (t [256]byte) {
		for i := range t {
			c := byte(i)
			switch {
			case upperCase[c]:
				t[i] = c | 0x20
			case letters[c], c >= 0x80:
				t[i] = c
			}
		}
		return t
	}()
)
