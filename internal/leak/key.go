package leak

import (
	"bytes"

	"github.com/ralph-pool/ralph/internal/pattern"
)

var keyHeader = pattern.Lazy(`^----(?:-BEGIN| BEGIN SSH2)[ +][A-Z0-9 +]*PRIVATE[ +]KEY(?:[ +]BLOCK)? ?----`)

// leastKey is the minimum number of base64 digits of a private key.
const leastKey = 32

// privateKey reports whether the text has a private key's header at a position and a key after it. Programs that read keys
// contain the header alone.
func privateKey(text []byte, at int) bool {
	header := keyHeader().FindIndex(text[at:min(len(text), at+longestShape)])
	if header == nil {
		return false
	}
	body := text[at+header[1]:]
	body = body[:min(len(body), longestShape)]
	for _, end := range []string{"-----END", "---- END", "-----BEGIN", "---- BEGIN"} {
		body, _, _ = bytes.Cut(body, []byte(end))
	}
	digit := func(r rune) bool { return r <= 0xff && base64s[r] }
	for run := range bytes.FieldsFuncSeq(body, func(r rune) bool { return !digit(r) }) {
		if len(run) >= leastKey && random64(run) {
			return true
		}
	}
	return false
}

// random64 reports whether base64 digits look random: they include capitals, small letters and digits.
func random64(text []byte) bool {
	return bytes.ContainsAny(text, "0123456789") && !bytes.Equal(bytes.ToUpper(text), text) && !bytes.Equal(bytes.ToLower(text), text)
}
