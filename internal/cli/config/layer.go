package config

import (
	"errors"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// layer holds the values of one source, with their origins.
type layer struct {
	source   Source
	values   map[string]any // by key name
	written  map[string]any // values as written, with unresolved paths
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

// set verifies and stores a value, or records the problem. name is the key as the user wrote it; empty if where names it.
func (l *layer) set(k keys.Key, v any, where, name string, choices []string) {
	if k.Guard == keys.Own && l.source == FromRepository {
		l.fail(where, prefix(name, "a repository may not set this key; use your own file, a variable or a flag"))
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

// chooseAgent selects the agent for a source that sets only agent-command.
func (l *layer) chooseAgent(commanded []string) {
	_, chosen := l.values["agent"]
	if words, _ := l.values["agent-command"].([]string); len(words) > 0 && !chosen && len(commanded) > 0 {
		l.values["agent"], l.origins["agent"] = commanded[0], l.origins["agent-command"]
	}
}

// dropsProgram reports that the source selects another agent than the one for which a weaker source sets agent-command.
func (l *layer) dropsProgram(commanded []string) bool {
	agent, chosen := l.values["agent"].(string)
	_, program := l.values["agent-command"]
	return chosen && !program && !slices.Contains(commanded, agent)
}

// prefix puts the key in front of a message about a file. For flags and variables, the place names the key already.
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
