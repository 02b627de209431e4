package config

import (
	"errors"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// layer is what one source says: typed values and where each stands.
type layer struct {
	source   Source
	values   map[string]any // by key name
	written  map[string]any // paths as a file has them
	origins  map[string]Origin
	problems Problems
}

func newLayer(s Source) *layer {
	return &layer{source: s, values: map[string]any{}, written: map[string]any{}, origins: map[string]Origin{}}
}

func (l *layer) has(key string) bool { _, set := l.values[key]; return set }

func (l *layer) fail(where, message string) {
	l.problems = append(l.problems, Problem{Where: where, Message: message})
}

// set verifies a value and keeps it, or the problem. name is what the user wrote to mean the key.
func (l *layer) set(k keys.Key, v any, where, name string, choices []string) {
	if k.Guard == keys.Own && l.source == FromRepository {
		l.fail(where, prefix(name, "a repository may not set it; set it in your own file, by a variable or by a flag"))
		return
	}
	if err := k.Verify(v, choices); err != nil {
		for _, e := range unjoin(err) {
			l.fail(where, prefix(name, e.Error()))
		}
		return
	}
	l.values[k.Name] = v
	l.origins[k.Name] = Origin{Source: l.source, Where: where}
}

// chooseAgent chooses the agent of a source that names only the agent's program.
func (l *layer) chooseAgent(commanded []string) {
	_, chosen := l.values["agent"]
	if words, _ := l.values["agent-command"].([]string); len(words) > 0 && !chosen && len(commanded) > 0 {
		l.values["agent"], l.origins["agent"] = commanded[0], l.origins["agent-command"]
	}
}

// dropsProgram reports that the source names another agent than a weaker source's program.
func (l *layer) dropsProgram(commanded []string) bool {
	agent, chosen := l.values["agent"].(string)
	_, program := l.values["agent-command"]
	return chosen && !program && !slices.Contains(commanded, agent)
}

// prefix names the key in a message from a file; flags and variables are already named by their place.
func prefix(name, message string) string {
	if name == "" {
		return message
	}
	return name + ": " + message
}

func unjoin(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
