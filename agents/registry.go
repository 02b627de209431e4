package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/nearest"
)

// Builtin returns the built-in agents. The first is the default. A new agent is one line here.
func Builtin() []Agent {
	return []Agent{
		Claude{},
		Codex{},
		Command{},
	}
}

// Registry is an immutable list of agents. The zero Registry is empty. It is safe for concurrent use.
type Registry struct {
	agents []Agent // in the order given, which users see
}

// NewRegistry returns a registry of the given agents. It panics on a programming error: a name that is empty or used twice.
func NewRegistry(agents ...Agent) Registry {
	seen := make(map[string]bool, len(agents))
	for _, a := range agents {
		name := a.Name()
		if name == "" || seen[name] {
			panic(fmt.Sprintf("agents: name %q is empty or taken", name))
		}
		seen[name] = true
	}
	return Registry{agents: slices.Clone(agents)}
}

// All returns the agents in the order in which they were registered.
func (r Registry) All() []Agent { return slices.Clone(r.agents) }

// Names returns their names in the same order.
func (r Registry) Names() []string {
	names := make([]string, 0, len(r.agents))
	for _, a := range r.agents {
		names = append(names, a.Name())
	}
	return names
}

// Lookup returns the agent with exactly this name. The error for an unknown name lists the valid ones and the nearest.
func (r Registry) Lookup(name string) (Agent, error) {
	for _, a := range r.agents {
		if a.Name() == name {
			return a, nil
		}
	}
	names := r.Names()
	return nil, fmt.Errorf("unknown agent %q: use one of %s%s", Clip(name, 60), strings.Join(names, ", "), suggestion(name, names))
}

// suggestion returns "; did you mean …?" for a name close to a valid one, and "" otherwise.
func suggestion(name string, valid []string) string {
	if near := nearest.To(name, valid); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
