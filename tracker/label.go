package tracker

import "strings"

// SameLabel reports whether two labels are the same. Trackers keep the case that a person typed, but it does not
// distinguish labels.
func SameLabel(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

func containsFold(list []string, s string) bool {
	for _, v := range list {
		if SameLabel(v, s) {
			return true
		}
	}
	return false
}
