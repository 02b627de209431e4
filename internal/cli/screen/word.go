package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainWord reports whether a name needs no quotes in a shell.
func PlainWord(name string) bool {
	return !strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, func(r rune) bool {
		plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)
		return r < utf8.RuneSelf && !plain || !unicode.IsPrint(r)
	})
}
