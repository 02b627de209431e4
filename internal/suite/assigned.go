package suite

import (
	"slices"
	"strings"
)

// assigned returns the packages to whose modules a text assigns, sorted.
func (e language) assigned(text []byte) (all []string) {
	s := source{e.Syntax.Read(text[:min(maxText, len(text))])}
	bound := map[string]string{}
	for _, i := range e.Imports.Read(s.Source) {
		if i.As != "" {
			bound[i.As] = i.Package()
		}
	}
	for i := range s.Tokens {
		name, ok := bound[string(s.Tokens[i].Of(s.Text))]
		if !ok || s.Is(i-1, ".") {
			continue
		}
		by := s.Is(i-2, "setattr") || s.Is(i-3, "Object") || s.Is(i-4, "Object") || s.Is(i-4, "Reflect")
		if by && s.Is(i-1, "(") && s.Is(i+1, ",") || s.setsMember(i, e.Imports.Packages) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// setsMember reports whether the token begins an assignment to a member of what it names. In languages in which settings are often
// members of members, only direct members and prototypes count.
func (s source) setsMember(i int, deep bool) bool {
	begin := i
	i++
	for n := 0; s.Is(i, ".") && n < 4; n++ {
		if s.Is(i+2, "=") {
			return !s.typed(begin) && !s.Is(i+3, "=") && !s.Is(i+3, ">") && (deep || n == 0 || s.Is(i-1, "prototype"))
		}
		i += 2
	}
	return false
}

// maxLine is the maximum number of tokens in which the beginning of a line is looked for.
const maxLine = 1000

// typed reports whether the token begins the type of a variable or a parameter, and not a statement: name: type = value.
func (s source) typed(i int) bool {
	if !s.Is(i-1, ":") || s.newLine(i) {
		return false
	}
	open, last := 0, max(0, i-maxLine)
	for ; i > last && !s.newLine(i); i-- {
		if s.Is(i-1, "(") {
			open++
		}
		if s.Is(i-1, ")") {
			open--
		}
	}
	if i > 0 && !s.newLine(i) {
		return false
	}
	first := string(s.Tokens[i].Of(s.Text))
	return open > 0 || !slices.Contains(strings.Fields("if elif else for while try except finally with def async class case default"), first)
}
