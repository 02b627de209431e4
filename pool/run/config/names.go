package config

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/agents"
)

// oddNames returns an error for each name that would break a line of a report, or a terminal that shows it.
func (c Config) oddNames() (list []error) {
	check := func(part, name string) {
		if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
			list = append(list, fmt.Errorf("%s: the name %q is empty or has control characters", part, name))
		}
	}
	agent := func(part string, a agents.Agent) {
		if a != nil {
			check(part, a.Name())
		}
	}
	check("Sandboxes", c.Sandboxes.Name())
	if c.Tracker != nil {
		check("Tracker", c.Tracker.Name())
	}
	agent("Agent", c.Agent)
	for n, l := range c.Fallback {
		agent(fmt.Sprintf("Fallback[%d].Agent", n), l.Agent)
	}
	for n, l := range c.Attempts {
		agent(fmt.Sprintf("Attempts[%d].Agent", n), l.Agent)
	}
	agent("Review.Agent", c.Review.Agent)
	return list
}
