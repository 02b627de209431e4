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

// Choice is the link's agent and model by name.
func (l Link) Choice() Choice { return Choice{l.Agent.Name(), l.Options.Model} }

// Chain is agents in the order of preference: when one is unavailable, the next goes on with the work.
type Chain []Link

// Attempt is the chain of the nth attempt: the nth of the list takes the place of the first agent, and its last does in all
// later ones. Without a list the chain stays as it is.
func (c Chain) Attempt(n int, list Chain) Chain {
	if len(list) == 0 || len(c) == 0 {
		return c
	}
	return append(Chain{list[min(max(n, 1), len(list))-1]}, c[1:]...).unique()
}

// All are the agents of all attempts.
func (c Chain) All(list Chain) Chain {
	if len(c) == 0 {
		return nil
	}
	return slices.Concat(c.Attempt(1, list), list).unique()
}

// Choices are the names of the chain's agents and models.
func (c Chain) Choices() []Choice {
	list := make([]Choice, 0, len(c))
	for _, l := range c {
		list = append(list, l.Choice())
	}
	return list
}

// Only are the links of these choices, in their order; the whole chain when it has none of them.
func (c Chain) Only(list []Choice) Chain {
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

// WithEnv is the chain whose agents get these settings, too. Their own settings win.
func (c Chain) WithEnv(env []string) Chain {
	out := slices.Clone(c)
	for i, l := range c {
		out[i].Options.Env = slices.Concat(env, l.Options.Env)
	}
	return out
}

// unique is the chain without the links whose choice an earlier link has.
func (c Chain) unique() Chain {
	var out Chain
	for _, l := range c {
		if !slices.Contains(out.Choices(), l.Choice()) {
			out = append(out, l)
		}
	}
	return out
}

// Mails are the addresses that the agents add to commits.
func (c Chain) Mails() (list []string) {
	for _, l := range c {
		list = append(list, l.Agent.Describe().Mail)
	}
	return list
}

// Check refuses what Check refuses for any of the agents.
func (c Chain) Check() error {
	var errs []error
	for _, l := range c {
		errs = append(errs, Check(l.Agent, l.Options))
	}
	return errors.Join(errs...)
}
