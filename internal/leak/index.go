package leak

import "slices"

// index finds patterns in texts.
type index struct {
	fold    *[256]byte // what each byte counts as; 0: nothing
	escapes bool       // an escape counts as what it stands for
	// begins has the patterns by their first Shortest bytes, and an entry for each shorter beginning. maybe has a bit for each
	// of its keys, and is much faster.
	begins map[uint64][]string
	maybe  []bool
	// longest is the length of the longest pattern.
	longest int
}

const maybeBits = 14

func newIndex(fold *[256]byte, escapes bool) index {
	return index{fold: fold, escapes: escapes, begins: map[uint64][]string{}, maybe: make([]bool, 1<<maybeBits)}
}

func hash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> (64 - maybeBits) }

// add adds what counts of a text, unless that is too short.
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
		x.begins[key] = nil // no shorter key has patterns
	}
	key = key<<8 | uint64(pattern[Shortest-1])
	x.maybe[hash(key)] = true
	if !slices.Contains(x.begins[key], string(pattern)) {
		x.begins[key] = append(x.begins[key], string(pattern))
	}
}

// next returns the byte with which the text begins, or what the escape there stands for, and its size; 0 when the text
// ends within it.
func (x *index) next(text []byte) (c byte, size int) {
	if !x.escapes || text[0] != '%' && text[0] != '\\' {
		return text[0], 1
	}
	return escape(text)
}

// escape reads %41, \x41, \u0041, \101, \0101 and the escapes of line ends and tabs, which are all one. A backslash before
// anything else is one.
func escape(text []byte) (c byte, size int) {
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
		c = c<<4 | nibble(text[i]) // of \u0041 the last two digits
	}
	return c, size
}

// octal reads \101, as programs write it, and \0101, as shells do.
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
			if i == 4 { // there are three digits
				return c, i
			}
			return '\\', 1
		}
		c = c<<3 | text[i]&7
	}
	return c, size
}

// nibble is the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0x0f + 9
}

// find returns where patterns stand in the text. Unless the text is the last, it ends where one begins that may go on after
// the text, and returns that place; else the text's end.
func (x *index) find(text []byte, last bool) (spans []span, open int) {
	open = len(text)
	if len(x.begins) == 0 {
		return nil, open
	}
	var (
		key   uint64        // the last bytes that count
		at    [Shortest]int // where they stand
		n     int           // how many there are
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
		if n++; !x.maybe[hash(key)] {
			continue
		}
		from, to := at[n%Shortest], 0
		for _, pattern := range x.begins[key] {
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
		if _, ok := x.begins[key&(1<<(8*short)-1)]; ok {
			return spans, min(open, at[(n-short)%Shortest])
		}
	}
	return spans, open
}

// match returns where the pattern ends with which the text begins. More reports that the text is too short to tell.
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

// gap is what stands between two bytes that count.
type gap struct{ size, lines int }

// longestGap is for a line end and the next line's indentation, with the quotes and operators of string literals.
const longestGap = 64

// ends takes a byte of the gap and reports whether no pattern goes over it. None goes over an empty line: an event of a
// stream ends with one.
func (g *gap) ends(c byte) bool {
	g.size++
	if c == '\n' {
		g.lines++
	}
	return g.lines > 1 || g.size > longestGap
}

//nolint:gochecknoglobals // tables, never written
var (
	// bytesAsTheyAre has zeros count as 0xff, which no text has.
	bytesAsTheyAre = func() (t [256]byte) {
		for i := range t {
			t[i] = byte(i)
		}
		t[0] = 0xff
		return t
	}()
	// lettersOnly leaves digits and letters, of which large and small ones are the same, and all that is not ASCII.
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
