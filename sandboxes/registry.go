package sandboxes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/nearest"
)

// Registry finds providers by name. The program composes it once; it is immutable.
type Registry struct {
	byName map[string]Provider
}

// NewRegistry returns a registry of the providers. It panics if two have the same name or one has an empty name: both are
// programming errors.
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

// Lookup returns the named provider. The error lists all valid names and suggests the nearest one.
func (r Registry) Lookup(name string) (Provider, error) {
	if p, ok := r.byName[name]; ok {
		return p, nil
	}
	names := r.Names()
	if len(names) == 0 {
		return nil, fmt.Errorf("sandbox %q is not known: this program has no sandboxes", name)
	}
	hint := ""
	if near := nearest.To(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return nil, fmt.Errorf("sandbox %q is not known: %svalid are %s", name, hint, strings.Join(names, ", "))
}

// Names returns the names in alphabetical order.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }
