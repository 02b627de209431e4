package message

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
)

// clipLimit is the most bytes of a line that are shown, with the sign of what was left out.
const clipLimit = 1<<10 + len("…")

// Clip is a line of a commit as it is shown: whole runes, and at most about 1 KiB of them. It keeps no other part of the
// string in memory.
func Clip(line string) string {
	return strings.Clone(neutral.Shorten(strings.ToValidUTF8(line, "\uFFFD"), clipLimit))
}
