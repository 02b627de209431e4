// Package pattern compiles regular expressions when they are first used: together they would double the time that every
// command takes to start. It also judges patterns of paths that strangers have written. Its functions are safe for concurrent use.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the expression at its first call. It panics there on one that is malformed.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
