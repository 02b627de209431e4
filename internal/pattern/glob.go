package pattern

import "github.com/bmatcuk/doublestar/v4"

// maxAlternatives is how many texts the braces of a pattern may stand for.
const maxAlternatives = 256

// Valid reports that a text is a pattern of paths which is matched in a moment. Every pair of braces multiplies the time: forty of
// them would never end.
func Valid(p string) bool { return doublestar.ValidatePattern(p) && alternatives(p) <= maxAlternatives }

// alternatives is for how many texts the braces of a valid pattern stand, or more than maxAlternatives.
func alternatives(p string) int {
	type level struct{ before, sum int } // of the braces around, and of the alternatives so far
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

// classEnd is where the class that begins at i ends. Braces in there are characters.
func classEnd(p string, i int) int {
	for i++; i < len(p) && p[i] != ']'; i++ {
		if p[i] == '\\' {
			i++
		}
	}
	return i
}
