package pattern

import "github.com/bmatcuk/doublestar/v4"

// maxAlternatives is the maximum number of texts to which the braces of a pattern may expand.
const maxAlternatives = 256

// Valid reports whether p is a valid path pattern that matches fast. Every pair of braces multiplies the time: with forty of
// them matching would never end.
func Valid(p string) bool { return doublestar.ValidatePattern(p) && alternatives(p) <= maxAlternatives }

// alternatives returns the number of texts to which the braces of a valid pattern expand, at most maxAlternatives+1.
func alternatives(p string) int {
	type level struct{ before, sum int } // counts before the opening brace, and of the alternatives so far
	var stack []level
	now := 1
	for i := 0; i < len(p); i++ {
		switch last := len(stack) - 1; {
		case p[i] == '\\':
			i++
		case p[i] == '[':
			i = classEnd(p, i)
		case p[i] == '{':
			stack, now = append(stack, level{before: now}), 1
		case p[i] == ',' && last >= 0:
			stack[last].sum, now = min(stack[last].sum+now, maxAlternatives+1), 1
		case p[i] == '}' && last >= 0:
			now = min(stack[last].before*(stack[last].sum+now), maxAlternatives+1)
			stack = stack[:last]
		}
	}
	return now
}

// classEnd returns the end of the character class that begins at i. Braces in a class are literal.
func classEnd(p string, i int) int {
	for i++; i < len(p) && p[i] != ']'; i++ {
		if p[i] == '\\' {
			i++
		}
	}
	return i
}
