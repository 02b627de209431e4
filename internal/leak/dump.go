package leak

import "bytes"

// longestColumn is how much text may stand at the end of a dump's line: the bytes again, as characters.
const longestColumn = 40

// dumps looks for hexadecimal in groups, as dumps and lists of bytes have it: "73 6b", "73:6b", "0x73, 0x6b", "736b 2d61".
// Groups of more than one byte are read in both orders. Offsets at a line's beginning and characters at its end are left
// out; a line without any group ends what belongs together.
func (d *decoder) dumps(text []byte, more int) bool {
	d.out[more], d.runs[more] = d.out[more][:0], d.runs[more][:0]
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		line = line[offset(line):]
		groups := 0
		for len(line) > 0 {
			if grouping[line[0]] {
				line = line[1:]
				continue
			}
			n := group(line)
			if n > 0 {
				d.grouped(line[:n], more)
				groups++
				line = line[n:]
				continue
			}
			if groups > 3 && len(line) <= longestColumn {
				break
			}
			if d.dumped(more) {
				return true
			}
			groups = 0
			line = line[word(line):]
		}
		if groups == 0 && d.dumped(more) {
			return true
		}
	}
	return d.dumped(more)
}

// dumped looks at the groups so far, and begins anew.
func (d *decoder) dumped(more int) bool {
	straight, swapped := d.out[more], d.runs[more]
	d.out[more], d.runs[more] = straight[:0], swapped[:0]
	if len(straight) < Shortest {
		return false
	}
	return d.inside(straight, more) || !bytes.Equal(straight, swapped) && d.inside(swapped, more)
}

// grouped adds a group's bytes, and the same ones from its end.
func (d *decoder) grouped(digits []byte, more int) {
	if len(digits) > 2 && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	for i := 0; i < len(digits); i += 2 {
		d.out[more] = append(d.out[more], nibble(digits[i])<<4|nibble(digits[i+1]))
	}
	for i := len(digits) - 2; i >= 0; i -= 2 {
		d.runs[more] = append(d.runs[more], nibble(digits[i])<<4|nibble(digits[i+1]))
	}
}

// grouping is what stands between groups.
//
//nolint:gochecknoglobals // a table, never written
var grouping = func() (t [256]bool) {
	for _, c := range []byte(" \t\r,:;-{}[]()\"'`\\+") {
		t[c] = true
	}
	return t
}()

// group is the length of the group of one, two or four bytes that a line begins with, with 0x before it; 0 when there is
// none.
func group(line []byte) int {
	lead := 0
	if len(line) > 2 && line[0] == '0' && line[1]|0x20 == 'x' {
		lead = 2
	}
	n := lead
	for n < len(line) && n-lead <= 8 && hexes[line[n]] {
		n++
	}
	if n-lead != 2 && n-lead != 4 && n-lead != 8 || n < len(line) && words[line[n]] {
		return 0
	}
	return n
}

// offset is the length of the offset that a dump's line begins with, in any base; 0 when there is none.
func offset(line []byte) int {
	n := 0
	for n < len(line) && hexes[line[n]] {
		n++
	}
	if n < 6 || n > 16 || n == len(line) || line[n] != ' ' && line[n] != ':' {
		return 0
	}
	return n
}

// word is the length of what is no group.
func word(line []byte) int {
	n := 1
	for n < len(line) && words[line[n-1]] && words[line[n]] {
		n++
	}
	return n
}

// base32In decodes the digits of base32 in a run, in capitals or small letters, at each alignment.
func (d *decoder) base32In(run []byte, more int) bool {
	for i := 0; i < len(run); i++ {
		from, small, capital, digit := i, false, false, false
		for ; i < len(run) && quintets[run[i]] != 0xff; i++ {
			small, capital, digit = small || run[i] >= 'a', capital || upperCase[run[i]], digit || digits[run[i]]
			if small && capital {
				break
			}
		}
		coded := run[from:i]
		if small && capital {
			i-- // the other kind may begin here
		}
		if len(coded) < short32 || !digit { // words have no digits
			continue
		}
		for skip := range 8 {
			out, bits, held := d.out[more][:0], 0, uint32(0)
			for _, c := range coded[skip:] {
				held = held<<5 | uint32(quintets[c])
				if bits += 5; bits >= 8 {
					bits -= 8
					out = append(out, byte(held>>bits))
				}
			}
			d.out[more] = out
			if d.inside(out, more) {
				return true
			}
		}
	}
	return false
}
