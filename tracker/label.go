package tracker

import (
	"slices"
	"strings"
)

// SameLabel reports whether two labels are equal, ignoring case and surrounding space. Trackers keep the case that a person
// typed, but do not distinguish labels by it.
func SameLabel(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return SameLabel(v, s) })
}

// MissingNames returns the names in want that are not in have, each once, compared as labels.
func MissingNames(have, want []string) []string {
	var out []string
	for _, w := range want {
		w = strings.TrimSpace(w)
		same := func(h string) bool { return SameLabel(h, w) }
		if w != "" && !slices.ContainsFunc(have, same) && !slices.ContainsFunc(out, same) {
			out = append(out, w)
		}
	}
	return out
}
