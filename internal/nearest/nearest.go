// Package nearest finds the known name that is closest to an unknown one, for hints in error messages. Its function is pure.
package nearest

import "strings"

// To returns the candidate that name is most likely a slip of, or "". Of several that are as near the first counts.
func To(name string, candidates []string) string {
	const long = 64 // nothing that people mistype is longer, and the distance is quadratic
	if name == "" || len(name) > long {
		return ""
	}
	best, least, exact := "", max(1, len(name)/3)+1, 0
	for _, c := range candidates {
		real := distance(strings.ToLower(name), strings.ToLower(c))
		d := real
		// A beginning is what people type from memory: "max" for "max-iterations"; and more than the name: "codex-cli".
		if len(name) >= 3 && strings.HasPrefix(c, name) || len(c) >= 3 && strings.HasPrefix(name, c) {
			d = 1
		}
		if d < least || d == least && best != "" && real < exact {
			best, least, exact = c, d, real
		}
	}
	return best
}

// DidYouMean is the end of an error line about a name that does not exist: the nearest candidate, with what stands before all of
// them; empty when none is near.
func DidYouMean(name, before string, candidates []string) string {
	if n := To(name, candidates); n != "" {
		return "; did you mean " + before + n + "?"
	}
	return ""
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
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
