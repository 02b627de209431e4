package message

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// clipLimit is the maximum length of a shown line in bytes, including the mark for the rest.
const clipLimit = 1<<10 + len("…")

// Clip shortens a line of a commit for display, to whole runes and about 1 KiB. The result does not keep the original
// string in memory.
func Clip(line string) string {
	return strings.Clone(neutral.Shorten(strings.ToValidUTF8(line, "\uFFFD"), clipLimit))
}
