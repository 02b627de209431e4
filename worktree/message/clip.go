package message

import (
	"strings"
	"unicode/utf8"
)

// clipLimit is the most bytes of a line that are shown.
const clipLimit = 1 << 10

// Clip is a line of a commit as it is shown: whole runes, and at most about 1 KiB of them. It keeps no other part of the
// string in memory.
func Clip(line string) string {
	if len(line) > clipLimit {
		end := clipLimit
		for !utf8.RuneStart(line[end]) && end > clipLimit-utf8.UTFMax {
			end--
		}
		line = line[:end] + "…"
	}
	return strings.Clone(strings.ToValidUTF8(line, "\uFFFD"))
}
