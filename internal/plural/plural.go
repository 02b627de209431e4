// Package plural counts things in words.
package plural

import "fmt"

// Of is a number of things: "1 issue", "2 issues".
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
