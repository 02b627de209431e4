package tracker

import "strings"

// SameLabel reports whether two labels are the same: trackers keep the case a person typed, but do not tell labels
// apart by it.
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
