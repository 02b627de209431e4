// Package plural formats counts with their nouns.
package plural

import (
	"fmt"
	"strings"
)

// Of formats a count with its noun: "1 issue", "2 issues", "2 canaries".
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, found := strings.CutSuffix(what, "ry"); found {
		return fmt.Sprintf("%d %sries", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
