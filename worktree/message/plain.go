package message

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Controls reports whether a commit's message, or the names in its header, contain control characters. A terminal obeys
// some of them when git log prints them, and others reorder the text that a reader sees.
func Controls(encoding, names, message string) bool {
	header := []string{"author " + names}
	if encoding != "" {
		header = append(header, encodingField+encoding)
	}
	_, _, found := withoutControls(header, message)
	return found
}

// withoutControls removes control characters, including bytes that are control characters in the declared encoding. If
// there are none, it changes nothing.
func withoutControls(header []string, message string) (cleanHeader []string, cleanMessage string, found bool) {
	lines, text := inUTF8(header, message)
	name := ""
	for _, line := range lines {
		if value, ok := strings.CutPrefix(line, encodingField); ok {
			name = strings.ToLower(value)
		}
	}
	clean := slices.Clone(lines)
	for i, line := range clean {
		if field, _, _ := strings.Cut(line, " "); field == "author" || field == "committer" || field == "encoding" {
			clean[i] = withoutControlsIn(name, line)
		}
	}
	cleanText := withoutControlsIn(name, text)
	if cleanText == text && slices.Equal(clean, lines) {
		return header, message, false
	}
	return clean, cleanText, true
}

// withoutControlsIn removes control characters from text in an encoding that represents ASCII characters by their ASCII
// bytes.
func withoutControlsIn(encoding, text string) string {
	utf, latin := true, false
	for _, prefix := range []string{"iso-8859-", "iso8859-", "latin"} {
		latin = latin || strings.HasPrefix(encoding, prefix)
	}
	if encoding != "" && !strings.HasPrefix(encoding, "utf") && !strings.HasSuffix(encoding, "ascii") {
		utf = false
	}
	high := latin // bytes from 0x80 to 0x9f are control characters
	if !utf && !latin {
		from := encodingOf([]string{encoding})
		high = from == nil
		if from != nil {
			_, known := decode(from, text)
			high = !known
		}
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if utf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		invalid := utf && r == utf8.RuneError && size == 1
		b := text[i]
		switch {
		case b == '\n', b == '\t', b == '\r' && strings.HasPrefix(text[i+1:], "\n"):
			_ = out.WriteByte(b)
		case b < 0x20, b == 0x7f, (high || invalid) && b >= 0x80 && b < 0xa0, utf && !invalid && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
		default:
			_, _ = out.WriteString(text[i : i+size])
		}
		i += size
	}
	return out.String()
}
