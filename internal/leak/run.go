package leak

import "bytes"

// sextets are the values of base64's characters, of both alphabets; 0xff for all else.
//
//nolint:gochecknoglobals // a table, never written
var sextets = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// quintets are the values of base32's characters, in capitals or small letters; 0xff for all else.
//
//nolint:gochecknoglobals // a table, never written
var quintets = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") {
		t[c] = byte(i)
		t[c|0x20] = byte(i) // of a digit, this is the digit
	}
	return t
}()

// runsOf looks for base64, base32 and hexadecimal digits: long runs of their characters, which may go over line ends.
func (d *decoder) runsOf(text []byte, more int) bool {
	for i := 0; i < len(text); {
		if sextets[text[i]] == 0xff {
			i++
			continue
		}
		from := i
		for i < len(text) && sextets[text[i]] != 0xff {
			i++
		}
		run, joined := text[from:i], false
		for {
			next := lineBreak(text, i)
			if next == i {
				break
			}
			if !joined {
				d.runs[more], joined = append(d.runs[more][:0], run...), true
			}
			for i = next; i < len(text) && sextets[text[i]] != 0xff; i++ {
				d.runs[more] = append(d.runs[more], text[i])
			}
		}
		if joined {
			run = d.runs[more]
		}
		if len(run) >= shortRun && (d.hexIn(run, more) || d.base64In(run, more) || d.base32In(run, more)) {
			return true
		}
	}
	return false
}

// longestBreak is how much may stand between two lines of one run.
const longestBreak = 80

// lineBreak returns where a run that ends at i goes on: after a line end, and what quotes, comments and string literals
// have around one. It returns i when the run ends there.
func lineBreak(text []byte, i int) int {
	line, at := false, i
	for at < len(text) && at-i < longestBreak {
		switch c := text[at]; c {
		case '\n':
			line = true
		case ' ', '\t', '\r', '"', '\'', '`', ',', ';', '#', '>', '*', '|', '(', ')':
		case '+':
			if at == i || text[at-1] != ' ' && text[at-1] != '"' && text[at-1] != '\'' {
				return ended(line, text, at, i)
			}
			if at+1 < len(text) && text[at+1] != ' ' && text[at+1] != '\n' && text[at+1] != '\r' {
				return ended(line, text, at, i)
			}
		case '/':
			if !bytes.HasPrefix(text[at:], []byte("// ")) {
				return ended(line, text, at, i)
			}
			at++
		case '\\':
			if at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r') {
				line = true
				at++
			}
		default:
			return ended(line, text, at, i)
		}
		at++
	}
	return i
}

// ended is where a break that goes from i to at leads.
func ended(line bool, text []byte, at, i int) int {
	if line && sextets[text[at]] != 0xff {
		return at
	}
	return i
}

// base64In decodes the run from each of its first four characters on: it may have begun before, in other text.
func (d *decoder) base64In(run []byte, more int) bool {
	for skip := range 4 {
		out := d.out[more][:0]
		for in := run[skip:]; len(in) >= 2; in = in[min(4, len(in)):] {
			var v uint32
			for k := range 4 {
				v <<= 6
				if k < len(in) {
					v |= uint32(sextets[in[k]])
				}
			}
			out = append(out, byte(v>>16), byte(v>>8), byte(v))
			if len(in) < 4 {
				out = out[:len(out)-4+len(in)]
			}
		}
		d.out[more] = out
		if d.inside(out, more) {
			return true
		}
	}
	return false
}

// hexIn decodes the hexadecimal digits of a run, at both alignments.
func (d *decoder) hexIn(run []byte, more int) bool {
	for i := 0; i < len(run); i++ {
		from := i
		for i < len(run) && hexes[run[i]] {
			i++
		}
		if i-from < shortHex {
			continue
		}
		for skip := range 2 {
			out := d.out[more][:0]
			for in := run[from+skip : i]; len(in) >= 2; in = in[2:] {
				out = append(out, nibble(in[0])<<4|nibble(in[1]))
			}
			d.out[more] = out
			if d.inside(out, more) {
				return true
			}
		}
	}
	return false
}
