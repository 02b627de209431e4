package leak

import (
	"bytes"

	"github.com/ralph-pool/ralph/internal/pattern"
)

var keyHeader = pattern.Lazy(`^----(?:-BEGIN| BEGIN SSH2)[ +][A-Z0-9 +]*PRIVATE[ +]KEY(?:[ +]BLOCK)? ?----`)

// leastKey is how many digits of base64 a private key has at the least that is worth the name.
const leastKey = 32

// privateKey reports whether a private key's header stands at a place of the text, and a key after it: programs that read
// keys have the header alone.
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

// random64 reports whether digits of base64 look as if by chance: they have capitals, small letters and numbers.
func random64(text []byte) bool {
	return bytes.ContainsAny(text, "0123456789") && !bytes.Equal(bytes.ToUpper(text), text) && !bytes.Equal(bytes.ToLower(text), text)
}
