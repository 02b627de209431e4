package sandboxes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Registry finds providers by name. It is a value that the program composes once, and does not change after that.
type Registry struct {
	byName map[string]Provider
}

// NewRegistry returns a registry of the providers. It panics when two have the same name, or one has none: both are
// mistakes in the program.
func NewRegistry(providers ...Provider) Registry {
	r := Registry{byName: make(map[string]Provider, len(providers))}
	for _, p := range providers {
		name := p.Name()
		if name == "" {
			panic(fmt.Sprintf("sandboxes: a %T has no name", p))
		}
		if _, taken := r.byName[name]; taken {
			panic("sandboxes: two providers are named " + name)
		}
		r.byName[name] = p
	}
	return r
}

// Lookup returns the provider of that name. The error names the nearest and all valid names.
func (r Registry) Lookup(name string) (Provider, error) {
	if p, ok := r.byName[name]; ok {
		return p, nil
	}
	names := r.Names()
	if len(names) == 0 {
		return nil, fmt.Errorf("sandbox %q is not known: there is none in this program", name)
	}
	hint := ""
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return nil, fmt.Errorf("sandbox %q is not known: %svalid are %s", name, hint, strings.Join(names, ", "))
}

// Names lists the names in alphabetical order.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// nearest returns the name with the fewest edits from what was typed; none when all are far.
func nearest(typed string, names []string) string {
	best, edits := "", max(len(typed)/3, 1)+1
	for _, name := range names {
		if d := distance(strings.ToLower(typed), name); d < edits {
			best, edits = name, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace that turns a into b.
func distance(a, b string) int {
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
