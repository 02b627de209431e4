// Package plural formats counts with their nouns.
package plural

import "fmt"

// Of formats a count with its noun: "1 issue", "2 issues".
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
