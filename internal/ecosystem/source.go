package ecosystem

import (
	"slices"

	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// IsSource reports whether the file, judged by its name, is source code in a known language.
func IsSource(file string) bool {
	return slices.ContainsFunc(All(), func(e Ecosystem) bool { return match.Any(e.Sources, file) })
}
