package sandboxes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// named is a provider with only a name.
type named struct {
	sandboxes.Provider
	name string
}

func (n named) Name() string { return n.name }

func TestLookup(t *testing.T) {
	t.Parallel()
	r := sandboxes.NewRegistry(named{name: "podman"}, named{name: "docker"}, named{name: "none"})
	if want := []string{"docker", "none", "podman"}; !slices.Equal(r.Names(), want) {
		t.Errorf("names are %q, want %q", r.Names(), want)
	}
	if p, err := r.Lookup("docker"); err != nil || p.Name() != "docker" {
		t.Errorf("docker is %v, %v", p, err)
	}
	const valid = "valid are docker, none, podman"
	for name, want := range map[string]string{
		"dcoker": `sandbox "dcoker" is not known: did you mean "docker"? ` + valid,
		"Docker": `sandbox "Docker" is not known: did you mean "docker"? ` + valid,
		"non":    `sandbox "non" is not known: did you mean "none"? ` + valid,
		"vm":     `sandbox "vm" is not known: ` + valid,
		"":       `sandbox "" is not known: ` + valid,
	} {
		if _, err := r.Lookup(name); err == nil || err.Error() != want {
			t.Errorf("Lookup(%q): %v, want %s", name, err, want)
		}
	}
	if _, err := (sandboxes.Registry{}).Lookup("none"); err == nil || !strings.Contains(err.Error(), "has no sandboxes") {
		t.Errorf("Lookup in an empty registry: %v", err)
	}
}

func TestRegistryRefusesMistakes(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]sandboxes.Provider{
		"two of one name": {named{name: "a"}, named{name: "b"}, named{name: "a"}},
		"no name":         {named{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("NewRegistry accepts it")
				}
			}()
			sandboxes.NewRegistry(list...)
		})
	}
}
