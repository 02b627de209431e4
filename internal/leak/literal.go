package leak

import "bytes"

// literals looks for values that are cut over string literals side by side, which a compiler joins. It looks for known
// values only: tests and examples write credentials in such pieces so that they are not taken for real ones.
func (d *decoder) literals(text []byte, more int) bool {
	reach := max(around, d.finder.longestValue)
	if d.finder.longestValue == 0 {
		return false
	}
	for i, done := 0, 0; i < len(text); {
		next := bytes.IndexAny(text[i:], "\"'`")
		if next < 0 {
			return false
		}
		i += next
		after := joint(text, i)
		if after == i {
			i++
			continue
		}
		plain := append(d.out[more][:0], text[max(done, i-reach):i]...)
		i = after
		for last := i; i < len(text) && i-last < reach; {
			if after := joint(text, i); after > i {
				i, last = after, after
				continue
			}
			plain = append(plain, text[i])
			i++
		}
		done = i
		d.out[more] = plain
		if d.left -= len(plain); d.left < 0 {
			return false
		}
		d.work += len(plain)
		if d.finder.hasValue(plain) {
			return true
		}
	}
	return false
}

// hasValue reports whether a value stands in the text.
func (f *Finder) hasValue(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if f.longest(text[i:]) > 0 {
			return true
		}
	}
	return false
}

// joint returns where a string literal goes on whose end stands at i: after an operator, a line end, and another literal's
// beginning. It returns i when there is none.
func joint(text []byte, i int) int {
	if !quotes[text[i]] {
		return i
	}
	operators := 0
	for at := i + 1; at < len(text) && at-i < longestBreak; at++ {
		switch c := text[at]; {
		case quotes[c]:
			return at + 1
		case c == ' ', c == '\t', c == '\r', c == '\n':
		case bytes.IndexByte([]byte("+.&|~\\"), c) >= 0 && operators < 4:
			operators++
		case letters[c]: // f"…", r'…'
			n := 1
			for n < 2 && at+n < len(text) && letters[text[at+n]] {
				n++
			}
			if at+n < len(text) && quotes[text[at+n]] && (at == i+1 || !letters[text[at-1]]) {
				return at + n + 1
			}
			return i
		default:
			return i
		}
	}
	return i
}

//nolint:gochecknoglobals // a table, never written
var quotes = classOf("\"", "'", "`")
