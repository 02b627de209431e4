package suite

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// beginning is the number of bytes by which git decides whether a content is data.
const beginning = 8000

// IsBinary reports whether git takes a content for data, whose changes it does not show.
func IsBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), beginning)], 0) >= 0
}

// Hides reports whether a file's new content has text or a program that git does not show. executable says that the file may be run.
// Data that was data before hides nothing, unless somebody runs it.
func Hides(file string, executable bool, old, now []byte) bool {
	switch {
	case bytes.HasPrefix(now, []byte("\xff\xfe")), bytes.HasPrefix(now, []byte("\xfe\xff")): // UTF-16
		return true
	case !IsBinary(now):
		return false
	case executable, bytes.HasPrefix(now, []byte("#!")):
		return true
	case IsBinary(old):
		return false
	}
	return len(old) > 0 || ecosystem.IsSource(file) || mostlyText(now)
}

// mostlyText reports whether a content is text but for zero bytes and a few others.
func mostlyText(content []byte) bool {
	content = bytes.ReplaceAll(content[:min(len(content), beginning)], []byte{0}, nil)
	other := 0
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !bytes.ContainsRune([]byte("\t\n\f\r\b\x1b"), r) {
			other++
		}
		rest = rest[size:]
	}
	return len(content) > 0 && other*20 <= len(content)
}
