package leak

import (
	"bytes"
	"encoding/base64"
	"sync"
)

// lead is the prefix of a kind of credential.
type lead struct {
	text  string
	shape *shape
}

// leads are the prefixes of credentials by their first two bytes.
//
//nolint:gochecknoglobals // a table, made at its first use: most commands do without
var leads = sync.OnceValue(func() *[1 << 16][]lead {
	var all [1 << 16][]lead
	known := shapes()
	for i := range known {
		for _, text := range known[i].leads {
			at := pair(text[0], text[1])
			all[at] = append(all[at], lead{text, &known[i]})
		}
	}
	return &all
})

func pair(a, b byte) int { return int(a)<<8 | int(b) }

// credential reports whether the text contains an unencoded well-known credential.
func credential(text []byte) bool {
	leads := leads()
	for i := 0; i+1 < len(text); i++ {
		for _, l := range leads[pair(text[i], text[i+1])] {
			if bytes.HasPrefix(text[i:], []byte(l.text)) && l.shape.fits(text, i, len(l.text)) {
				return true
			}
		}
	}
	return false
}

// inUTF16 reports whether the text contains a credential in UTF-16.
func inUTF16(text []byte) bool {
	return bytes.IndexByte(text, 0) >= 0 && credential(bytes.ReplaceAll(text, []byte{0}, nil))
}

// shortRun is the number of base64 digits of the shortest credential, which has 20 bytes.
const shortRun = 26

// inBase64 reports whether the text contains a credential in base64 of either alphabet, also across line ends.
func inBase64(text []byte) bool {
	var run []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '-':
			run = append(run, '+')
		case c == '_':
			run = append(run, '/')
		case base64s[c]:
			run = append(run, c)
		default:
			if next := lineBreak(text, i); next > i {
				i = next - 1
				continue
			}
			if inBase64Run(run) {
				return true
			}
			run = run[:0]
		}
	}
	return inBase64Run(run)
}

// inBase64Run decodes base64 digits from each of the first four positions: the run may begin in other text.
func inBase64Run(run []byte) bool {
	if len(run) < shortRun {
		return false
	}
	out := make([]byte, len(run))
	for skip := range 4 {
		n, _ := base64.RawStdEncoding.Decode(out, run[skip:]) // the end may decode to an incomplete byte
		if credential(out[:n]) {
			return true
		}
	}
	return false
}

// lineBreak returns the start of the text on the next line, after its indentation, if a line ends at i; otherwise i.
func lineBreak(text []byte, i int) int {
	if rest := bytes.TrimPrefix(text[i:], []byte("\r")); bytes.HasPrefix(rest, []byte("\n")) {
		return len(text) - len(bytes.TrimLeft(rest[1:], " \t"))
	}
	return i
}
