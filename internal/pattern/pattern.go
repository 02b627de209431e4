// Package pattern compiles regular expressions on first use: compiling all at once would double the start-up time of every
// command. It also validates path patterns from untrusted sources. Its functions are safe for concurrent use.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the expression on its first call. That call panics if the expression is malformed.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
