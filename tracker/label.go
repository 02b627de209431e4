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

// Lacks is what Unfit says of an issue without the label.
func Lacks(label string) string { return "lacks label " + label }

// Unfit is the reason in the issue itself why it may not be worked by somebody who wants all of the required labels and none of
// the excluded ones; empty: there is none.
func (i Issue) Unfit(require, exclude []string) string {
	if !i.Open {
		return "closed"
	}
	for _, l := range require {
		if !i.HasLabel(l) {
			return Lacks(l)
		}
	}
	for _, l := range exclude {
		if i.HasLabel(l) {
			return "carries excluded label " + l
		}
	}
	if i.Taken != "" {
		return i.Taken
	}
	if by := i.Blockers(); by != "" {
		return "blocked by " + by
	}
	return ""
}
