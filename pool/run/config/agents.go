package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Chain returns the agents of an issue's nth attempt, in the order in which they are tried. It is empty if there is no Agent.
func (c Config) Chain(attempt int) agents.Chain {
	if c.Agent == nil {
		return nil
	}
	return append(agents.Chain{{Agent: c.Agent, Options: c.Options}}, c.Fallback...).Attempt(attempt, c.Attempts)
}

// Agents returns the agents of all attempts.
func (c Config) Agents() agents.Chain { return c.Chain(1).All(c.Attempts) }

// unasked lets agents act without asking for permission if the sandbox isolates them: nobody would answer.
func (c Config) unasked() Config {
	if c.Sandboxes == nil || !c.Sandboxes.Capabilities().Isolated() {
		return c
	}
	skip := func(o *agents.Options) { o.SkipPermissions = o.SkipPermissions || o.PermissionMode == "" }
	c.Fallback, c.Attempts = slices.Clone(c.Fallback), slices.Clone(c.Attempts)
	for _, links := range []agents.Chain{c.Fallback, c.Attempts} {
		for n := range links {
			skip(&links[n].Options)
		}
	}
	skip(&c.Options)
	skip(&c.Review.Options)
	return c
}

// Reviewer configures the second agent. The zero value means no review.
type Reviewer struct {
	Agent   agents.Agent
	Options agents.Options
	Rounds  int // how often its findings go back to the run's agent; 0: 2; negative: never
}

// Check returns an error for options that the reviewer's agent does not support, and for a service address that was meant for the
// other agent: a key would go there.
func (r Reviewer) Check(other agents.Agent, n gateway.Network) error {
	if r.Agent == nil {
		return nil
	}
	if n.Upstream != "" && other != nil && other.Name() != r.Agent.Name() {
		return fmt.Errorf("reviewer %s: %s is the address of the service of %s", r.Agent.Name(), n.Upstream, other.Name())
	}
	if err := agents.Check(r.Agent, r.Options); err != nil {
		return fmt.Errorf("reviewer: %w", err)
	}
	return nil
}

// Settings returns the settings of the review for a run that starts now.
func (r Reviewer) Settings() journal.Reviewing {
	if r.Agent == nil {
		return journal.Reviewing{}
	}
	return journal.Reviewing{Agent: agents.Link{Agent: r.Agent, Options: r.Options}.Choice().String(), Rounds: max(0, cmp.Or(r.Rounds, 2))}
}
