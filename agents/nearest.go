package agents

import (
	"fmt"
	"strings"
)

// suggestion is "; did you mean …?" for a name close to a valid one, and empty when none is close.
func suggestion(name string, valid []string) string {
	best, distance := "", 4 // further away is no typing mistake
	for _, v := range valid {
		if v != "" && name != "" && (strings.HasPrefix(v, name) || strings.HasPrefix(name, v)) {
			best = v
			break
		}
		if d := edits(name, v); d < distance && d < len(v) {
			best, distance = v, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// edits is the Levenshtein distance in bytes; names too long to be a typing mistake count as far away.
func edits(a, b string) int {
	const far = 64
	if len(a) > far || len(b) > far {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
