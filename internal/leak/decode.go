package leak

import "bytes"

// What is looked at, at most.
const (
	depth  = 3       // encodings one in the other
	factor = 16      // decoded bytes for each byte given
	start  = 4 << 20 // and so many more, for small data that is packed well
	// A run of an encoding's characters has to hold the shortest credential, of 20 bytes.
	shortRun = 26
	shortHex = 40
	short32  = 32
)

// decoder looks into encodings. It belongs to one goroutine.
type decoder struct {
	finder *Finder
	left   int // decoded bytes that may still be looked at
	work   int // bytes looked at so far
	begun  bool
	flat   inflater
	// One scratch buffer for each depth: joined runs and what comes out of them.
	runs, out [depth + 1][]byte
}

// look reports whether the text carries a secret.
func (d *decoder) look(text []byte) bool {
	if !d.begun {
		d.begun, d.left = true, start
	}
	d.left += factor * len(text)
	return d.at(text, depth)
}

// at looks at text in which so many more encodings are looked into.
func (d *decoder) at(text []byte, more int) bool {
	d.work += len(text)
	if d.finder.plain(text) {
		return true
	}
	if more == 0 {
		return false
	}
	return d.runsOf(text, more) || d.dumps(text, more) || d.wide(text, more) || d.escapes(text, more) || d.literals(text, more) ||
		d.packed(text, more)
}

// inside looks at what was decoded, as long as there is budget.
func (d *decoder) inside(decoded []byte, more int) bool {
	if d.left -= len(decoded); d.left < 0 {
		return false
	}
	return d.at(decoded, more-1)
}

// wide looks for UTF-16 of either order: every second byte is zero.
func (d *decoder) wide(text []byte, more int) bool {
	for i := 0; ; {
		next := bytes.IndexByte(text[i:], 0)
		if next < 0 {
			return false
		}
		i += next
		end := i
		for end+2 < len(text) && text[end+2] == 0 && text[end+1] != 0 {
			end += 2
		}
		if end-i < 2*(Shortest-2) {
			i = max(end, i+1)
			continue
		}
		// The characters stand between the zeros, and one more before the first or after the last.
		narrow := d.out[more][:0]
		if i > 0 {
			narrow = append(narrow, text[i-1])
		}
		first := len(narrow)
		for at := i + 1; at <= end+1 && at < len(text); at += 2 {
			narrow = append(narrow, text[at])
		}
		d.out[more] = narrow
		if d.inside(narrow, more) || first > 0 && d.inside(narrow[first:], more) {
			return true
		}
		i = end + 1
	}
}

// around is how far text belongs to an escape in it.
const around = 256

// escapes looks for percent escapes and those of string literals, with what stands around them.
func (d *decoder) escapes(text []byte, more int) bool {
	for i, done := 0, 0; i < len(text); {
		next := bytes.IndexAny(text[i:], `%\`)
		if next < 0 {
			return false
		}
		i += next
		if _, n := escape(text[i:]); n == 0 {
			i++
			continue
		}
		plain := append(d.out[more][:0], text[max(done, i-around):i]...)
		for last := i; i < len(text) && i-last < around; {
			if c, n := escape(text[i:]); n > 0 {
				plain = append(plain, c)
				i += n
				last = i
				continue
			}
			plain = append(plain, text[i])
			i++
		}
		done = i
		d.out[more] = plain
		if d.inside(plain, more) {
			return true
		}
	}
	return false
}

// escape decodes %41, \x41 and \u0041; n is 0 for everything else.
func escape(text []byte) (c byte, n int) {
	lead := 0
	switch {
	case text[0] == '%':
		lead = 1
	case bytes.HasPrefix(text, []byte(`\x`)):
		lead = 2
	case bytes.HasPrefix(text, []byte(`\u00`)):
		lead = 4
	default:
		return 0, 0
	}
	if len(text) < lead+2 || !hexes[text[lead]] || !hexes[text[lead+1]] {
		return 0, 0
	}
	return nibble(text[lead])<<4 | nibble(text[lead+1]), lead + 2
}

// nibble is the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0x0f + 9
}
