// Package nearest finds the known name closest to an unknown one, for hints in error messages. Its functions are pure.
package nearest

import "strings"

// To returns the candidate of which name is most likely a misspelling, or "". If several are equally close, the first wins.
func To(name string, candidates []string) string {
	const long = 64 // longer names are not typos, and the distance takes quadratic time
	if name == "" || len(name) > long {
		return ""
	}
	best, least, exact := "", max(1, len(name)/3)+1, 0
	for _, c := range candidates {
		real := distance(strings.ToLower(name), strings.ToLower(c))
		d := real
		// People type prefixes from memory ("max" for "max-iterations"), or more than the name ("codex-cli").
		if len(name) >= 3 && strings.HasPrefix(c, name) || len(c) >= 3 && strings.HasPrefix(name, c) {
			d = 1
		}
		if d < least || d == least && best != "" && real < exact {
			best, least, exact = c, d, real
		}
	}
	return best
}

// DidYouMean returns the end of an error message about an unknown name: the nearest candidate, prefixed with before. It is
// empty if no candidate is close.
func DidYouMean(name, before string, candidates []string) string {
	if n := To(name, candidates); n != "" {
		return "; did you mean " + before + n + "?"
	}
	return ""
}

// distance counts insertions, deletions, substitutions and swaps of adjacent bytes.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
