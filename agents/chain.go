package agents

import (
	"errors"
	"slices"
)

// Link is an agent with the user's choices for it.
type Link struct {
	Agent   Agent
	Options Options
}

// Choice returns the names of the link's agent and model.
func (l Link) Choice() Choice { return Choice{l.Agent.Name(), l.Options.Model} }

// Chain is a list of agents in order of preference: if one is unavailable, the next continues the work.
type Chain []Link

// Attempt returns the chain of the nth attempt: the nth element of list replaces the first agent, or the last element if n is
// larger. Without a list the chain is unchanged.
func (c Chain) Attempt(n int, list Chain) Chain {
	if len(list) == 0 || len(c) == 0 {
		return c
	}
	return append(Chain{list[min(max(n, 1), len(list))-1]}, c[1:]...).unique()
}

// All returns the agents of all attempts.
func (c Chain) All(list Chain) Chain {
	if len(c) == 0 {
		return nil
	}
	return slices.Concat(c.Attempt(1, list), list).unique()
}

// Choices returns the names of the chain's agents and models.
func (c Chain) Choices() []Choice {
	list := make([]Choice, 0, len(c))
	for _, l := range c {
		list = append(list, l.Choice())
	}
	return list
}

// Select returns the links with these choices, in the order of list; the whole chain if there are none.
func (c Chain) Select(list []Choice) Chain {
	var out Chain
	for _, choice := range list {
		if i := slices.Index(c.Choices(), choice); i >= 0 {
			out = append(out, c[i])
		}
	}
	if len(out) == 0 {
		return c
	}
	return out
}

// WithEnv returns the chain with additional settings for its agents, which their own settings override.
func (c Chain) WithEnv(env []string) Chain {
	out := slices.Clone(c)
	for i, l := range c {
		out[i].Options.Env = slices.Concat(env, l.Options.Env)
	}
	return out
}

// unique returns the chain without links whose choice an earlier link has.
func (c Chain) unique() Chain {
	var out Chain
	for _, l := range c {
		if !slices.Contains(out.Choices(), l.Choice()) {
			out = append(out, l)
		}
	}
	return out
}

// Mails returns the email addresses that the agents add to commits.
func (c Chain) Mails() (list []string) {
	for _, l := range c {
		list = append(list, l.Agent.Describe().Mail)
	}
	return list
}

// Check returns the errors of Check for all agents.
func (c Chain) Check() error {
	var errs []error
	for _, l := range c {
		errs = append(errs, Check(l.Agent, l.Options))
	}
	return errors.Join(errs...)
}
