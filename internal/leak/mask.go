package leak

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// Mask returns a writer that puts stars in place of a value, as many as it has bytes there, however the stream is cut
// into pieces. It finds the value as it is, with any of its characters in percent or backslash escapes, reversed, in
// UTF-16, and in hexadecimal, base64 and base32 at any alignment, also over line ends. It holds back only what may be the
// value's beginning, so that a stream of events is not delayed. A value shorter than Shortest is not looked for: ordinary
// text has it by chance. Closing leaves to open.
func Mask(to io.Writer, value string) io.WriteCloser {
	m := &masker{to: to}
	if len(value) < Shortest {
		return m
	}
	v := []byte(value)
	reversed := slices.Clone(v)
	slices.Reverse(reversed)
	m.raw = newView(v)
	var plain []byte // the value may have what looks like escapes
	own := unescaper{emit: func(s symbol) { plain = append(plain, s.c) }}
	for i, c := range v {
		own.next(symbol{c, i, i + 1})
	}
	for len(own.pending) > 0 {
		own.end()
	}
	m.text = newView(v, plain, reversed)
	m.escapes.emit = m.decoded
	m.base64 = newView(digitsOf(v, 6, 0), digitsOf(v, 6, 1), digitsOf(v, 6, 2))
	m.base32 = newView(digitsOf(v, 5, 0), digitsOf(v, 5, 1), digitsOf(v, 5, 2), digitsOf(v, 5, 3), digitsOf(v, 5, 4))
	m.hex = newView(digitsOf(v, 4, 0))
	m.views = []*view{m.raw, m.text, m.base64, m.base32, m.hex}
	return m
}

// MaskText is Mask for a whole text.
func MaskText(text, value string) string {
	var b strings.Builder
	m := Mask(&b, value)
	_, _ = io.WriteString(m, text) // a Builder fails never
	_ = m.Close()
	return b.String()
}

// digitsOf are the digits, of so many bits each, that the value alone decides when it stands shift bytes into what was
// encoded.
func digitsOf(value []byte, size, shift int) []byte {
	var all []byte
	for i := (8*shift + size - 1) / size; i < 8*(shift+len(value))/size; i++ {
		var digit byte
		for bit := i*size - 8*shift; bit < (i+1)*size-8*shift; bit++ {
			digit = digit<<1 | value[bit/8]>>(7-bit%8)&1
		}
		all = append(all, digit)
	}
	return all
}

// masker looks at a stream in several ways at once. Places are bytes from the stream's beginning.
type masker struct {
	to   io.Writer
	held []byte // what was not written yet
	base int    // the place of held[0]

	views                          []*view // none: there is nothing to look for
	raw, text, base64, base32, hex *view
	escapes                        unescaper
	zero                           symbol // of the view hex: a 0 after which an x may come
	zeroed                         bool
}

// symbol is a byte of the stream, or what an escape stands for, and the places where it begins and ends.
type symbol struct {
	c        byte
	from, to int
}

func (m *masker) Write(p []byte) (int, error) {
	if len(m.views) == 0 {
		return m.to.Write(p)
	}
	at := m.base + len(m.held)
	m.held = append(m.held, p...)
	for i, c := range p {
		s := symbol{c, at + i, at + i + 1}
		m.star(m.raw.next(s))
		m.escapes.next(s)
	}
	return len(p), m.release(m.undecided() - m.base)
}

// Close writes what was held back: it was not the value.
func (m *masker) Close() error { return m.release(len(m.held)) }

// release writes the first n of the bytes that are held.
func (m *masker) release(n int) error {
	if n == 0 {
		return nil
	}
	_, err := m.to.Write(m.held[:n])
	m.held = m.held[:copy(m.held, m.held[n:])]
	m.base += n
	return err
}

// undecided is the first place that may belong to a value.
func (m *masker) undecided() int {
	first := m.base + len(m.held)
	if len(m.escapes.pending) > 0 {
		first = m.escapes.pending[0].from
	}
	for _, v := range m.views {
		first = min(first, v.begins(first))
	}
	if m.zeroed && m.hex.tracks[0].pattern[0] == 0 {
		first = min(first, m.zero.from)
	}
	return first
}

func (m *masker) star(from, to int) {
	for i := from; i < to; i++ {
		m.held[i-m.base] = '*'
	}
}

// decoded takes what the stream says, after its escapes.
func (m *masker) decoded(s symbol) {
	if s.c == 0 {
		m.text.gap(false) // UTF-16
	} else {
		m.star(m.text.next(s))
	}
	digit := s
	switch s.c {
	case '\n', '\r', ' ', '\t':
		m.base64.gap(s.c == '\n')
		m.base32.gap(s.c == '\n')
	default:
		if digit.c = sextets[s.c]; digit.c == 0xff {
			m.base64.cut()
		} else {
			m.star(m.base64.next(digit))
		}
		if digit.c = quintets[s.c]; digit.c == 0xff {
			m.base32.cut()
		} else {
			m.star(m.base32.next(digit))
		}
	}
	m.hexDigit(s)
}

// hexDigit takes the digits of hexadecimal, however they are grouped: "73 6b", "73:6b", "0x73, 0x6b".
func (m *masker) hexDigit(s symbol) {
	if m.zeroed {
		m.zeroed = false
		if s.c == 'x' || s.c == 'X' {
			m.hex.gap(false)
			return
		}
		m.star(m.hex.next(m.zero))
	}
	switch {
	case s.c == '0':
		m.zero, m.zeroed = symbol{0, s.from, s.to}, true // the first digit of control characters only
	case hexes[s.c]:
		m.star(m.hex.next(symbol{nibble(s.c), s.from, s.to}))
	case bytes.IndexByte([]byte(" \t\r\n:,-"), s.c) >= 0:
		m.hex.gap(s.c == '\n')
	default:
		m.hex.cut()
	}
}

// unescaper passes on symbols, of which escapes are one each.
type unescaper struct {
	emit    func(symbol)
	pending []symbol // what may be an escape
}

// longestEscape bounds an escape that is escaped again and again.
const longestEscape = 64

func (u *unescaper) next(s symbol) {
	if len(u.pending) == 0 && s.c != '%' && s.c != '\\' {
		u.emit(s)
		return
	}
	u.pending = append(u.pending, s)
	whole := symbol{0, u.pending[0].from, s.to}
	var ok, more bool
	if whole.c, ok, more = readEscape(u.pending); more {
		return
	}
	if ok {
		again := whole.c == '%' || whole.c == '\\' && len(u.pending) == 2 // %2541, \\u0041
		u.pending = u.pending[:0]
		if again && whole.to-whole.from < longestEscape {
			u.pending = append(u.pending, whole)
			return
		}
		u.emit(whole)
		return
	}
	u.end()
}

// end passes on what was no escape.
func (u *unescaper) end() {
	pending := u.pending
	u.pending = nil
	if len(pending) == 0 {
		return
	}
	u.emit(pending[0])
	for _, s := range pending[1:] {
		u.next(s)
	}
}

// readEscape decodes %41, \x41, \u0041, and a backslash before a line end's letter or a character that stands for itself.
// More means that it is not complete.
func readEscape(s []symbol) (c byte, ok, more bool) {
	if len(s) == 1 {
		return 0, false, true
	}
	lead, size := 1, 2
	if s[0].c == '\\' {
		lead = 2
		switch s[1].c {
		case 'u':
			size = 4
		case 'x':
		case 'n', 'r', 't':
			return '\n', true, false // all the same to a reader of digits
		case '\\', '/', '"', '\'':
			return s[1].c, true, false
		default:
			return 0, false, false
		}
	}
	var code int
	for _, d := range s[lead:] {
		if !hexes[d.c] {
			return 0, false, false
		}
		code = code<<4 | int(nibble(d.c))
	}
	if len(s) < lead+size {
		return 0, false, true
	}
	return byte(min(code, 0xff)), true, false //nolint:gosec // it is at most 0xff
}

// view looks for patterns in one reading of the stream.
type view struct {
	tracks []track
	starts []int // where the last symbols begin, in a ring
	n      int   // symbols so far
	gaps   int   // between the last symbol and the next
	lines  int   // line ends in them
}

// track is how much of a pattern the stream has now, by Knuth, Morris and Pratt.
type track struct {
	pattern []byte
	back    []int // for each length of its beginning: the longest shorter beginning that this one ends with
	depth   int
}

func newView(patterns ...[]byte) *view {
	v := &view{}
	longest := 0
	for _, p := range patterns {
		longest = max(longest, len(p))
		back := make([]int, len(p)+1)
		for i, depth := 1, 0; i < len(p); i++ {
			for depth > 0 && p[i] != p[depth] {
				depth = back[depth]
			}
			if p[i] == p[depth] {
				depth++
			}
			back[i+1] = depth
		}
		v.tracks = append(v.tracks, track{pattern: p, back: back})
	}
	v.starts = make([]int, longest)
	return v
}

// next takes a symbol and returns the places of a pattern that ends with it; from equals to when there is none.
func (v *view) next(s symbol) (from, to int) {
	v.starts[v.n%len(v.starts)] = s.from
	v.n++
	v.gaps, v.lines = 0, 0
	from = s.to
	for i := range v.tracks {
		t := &v.tracks[i]
		for t.depth > 0 && t.pattern[t.depth] != s.c {
			t.depth = t.back[t.depth]
		}
		if t.pattern[t.depth] == s.c {
			t.depth++
		}
		if t.depth == len(t.pattern) {
			from = min(from, v.start(t.depth))
			t.depth = t.back[t.depth]
		}
	}
	return from, s.to
}

// longestGap is how much may stand between two digits: a line end, and the next line's indentation.
const longestGap = 16

// gap takes what may stand between two symbols. Nothing goes over an empty line, with which an event ends.
func (v *view) gap(line bool) {
	v.gaps++
	if line {
		v.lines++
	}
	if v.lines > 1 || v.gaps > longestGap {
		v.cut()
	}
}

// cut takes what no pattern has.
func (v *view) cut() {
	for i := range v.tracks {
		v.tracks[i].depth = 0
	}
}

// begins is the place where the first pattern begins that has begun; otherwise it is the given one.
func (v *view) begins(otherwise int) int {
	for i := range v.tracks {
		if depth := v.tracks[i].depth; depth > 0 {
			otherwise = min(otherwise, v.start(depth))
		}
	}
	return otherwise
}

// start is the place of the last symbol but depth-1.
func (v *view) start(depth int) int { return v.starts[(v.n-depth)%len(v.starts)] }
