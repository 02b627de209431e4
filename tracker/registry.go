package tracker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/nearest"
)

// Registry is an immutable list of the kinds of trackers. The zero Registry is empty. It is safe for concurrent use.
type Registry struct {
	all []Descriptor // in the order given, which users see
}

// NewRegistry returns a registry of the given kinds. It panics on a programming error: a name that is empty or used twice,
// or a nil Open.
func NewRegistry(all ...Descriptor) Registry {
	seen := map[string]bool{}
	for _, d := range all {
		if d.Name == "" || seen[d.Name] || d.Open == nil {
			panic(fmt.Sprintf("tracker: name %q is empty or taken, or cannot be opened", d.Name))
		}
		seen[d.Name] = true
	}
	return Registry{all: slices.Clone(all)}
}

// All returns the kinds in their order.
func (r Registry) All() []Descriptor { return slices.Clone(r.all) }

// Names returns the names of the kinds in their order.
func (r Registry) Names() []string {
	names := make([]string, 0, len(r.all))
	for _, d := range r.all {
		names = append(names, d.Name)
	}
	return names
}

// Lookup returns the kind with exactly this name. The error for an unknown name lists the valid ones.
func (r Registry) Lookup(name string) (Descriptor, error) {
	for _, d := range r.all {
		if d.Name == name {
			return d, nil
		}
	}
	suggestion := ""
	if near := nearest.To(name, r.Names()); near != "" {
		suggestion = fmt.Sprintf("; did you mean %q?", near)
	}
	return Descriptor{}, fmt.Errorf("unknown tracker %q: use one of %s%s", name, strings.Join(r.Names(), ", "), suggestion)
}

// Folder returns the first kind whose issues are files in a folder of the repository.
func (r Registry) Folder() (Descriptor, bool) {
	for _, d := range r.all {
		if d.Takes(OptionFolder) {
			return d, true
		}
	}
	return Descriptor{}, false
}

// ForRemote returns the kind for the host of a git remote. A full host name takes precedence over a pattern.
func (r Registry) ForRemote(address string) (Descriptor, bool) {
	remote, err := ParseRemote(address)
	if err != nil {
		return Descriptor{}, false
	}
	var found Descriptor
	for _, d := range r.all {
		serves, exact := d.Serves(remote.Host)
		if exact {
			return d, true
		}
		if serves && found.Name == "" {
			found = d
		}
	}
	return found, found.Name != ""
}

// SecretVars returns the environment variables of all kinds that must be hidden from agents.
func (r Registry) SecretVars() []string {
	var names []string
	for _, d := range r.all {
		names = append(append(names, d.TokenVars...), d.SecretVars...)
	}
	return names
}
