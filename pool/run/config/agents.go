package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Chain is the agents of an issue's nth attempt, in the order in which they are tried; none for commands.
func (c Config) Chain(attempt int) agents.Chain {
	if c.Agent == nil {
		return nil
	}
	return append(agents.Chain{{Agent: c.Agent, Options: c.Options}}, c.Next...).Attempt(attempt, c.Attempts)
}

// Agents are those of all attempts.
func (c Config) Agents() agents.Chain { return c.Chain(1).All(c.Attempts) }

// unasked lets agents act without asking where the sandbox isolates them: nobody would answer.
func (c Config) unasked() Config {
	if c.Sandboxes == nil || !c.Sandboxes.Capabilities().Isolated() {
		return c
	}
	skip := func(o *agents.Options) { o.SkipPermissions = o.SkipPermissions || o.PermissionMode == "" }
	c.Next, c.Attempts = slices.Clone(c.Next), slices.Clone(c.Attempts)
	for _, links := range []agents.Chain{c.Next, c.Attempts} {
		for n := range links {
			skip(&links[n].Options)
		}
	}
	skip(&c.Options)
	skip(&c.Review.Options)
	return c
}

// Reviewer is the second agent. The zero value is none.
type Reviewer struct {
	Agent   agents.Agent
	Options agents.Options
	Rounds  int // how often its findings go back to the run's agent; default 2; negative: never
}

// Check refuses options that the reviewer's agent does not support, and an address that was meant for the service of the
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

// Settings are what a run that starts now has to go by.
func (r Reviewer) Settings() journal.Reviewing {
	if r.Agent == nil {
		return journal.Reviewing{}
	}
	return journal.Reviewing{Agent: agents.Link{Agent: r.Agent, Options: r.Options}.Choice().String(), Rounds: max(0, cmp.Or(r.Rounds, 2))}
}
