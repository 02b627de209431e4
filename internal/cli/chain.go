package cli

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes"
)

// agents are the agent that the configuration names, those that go on when it is unavailable, and those of attempts.
type agentsOf struct {
	agents.Link
	next, attempts agents.Chain
	shares         ledger.Shares
}

// chain is the agents that the configuration names, and the environment for the sandbox.
func (a *app) chain(c config.Config, provider sandboxes.Provider) (all agentsOf, env []string, err error) {
	if all.Agent, all.Options, env, err = a.agent(c, provider); err != nil {
		return all, nil, err
	}
	read := func(key string, list []string, own bool) (chain agents.Chain, err error) {
		for _, text := range list {
			choice, err := agents.ParseChoice(text)
			if err != nil {
				return nil, usagef("%s: %w", key, err)
			}
			if _, err := a.agents().Lookup(choice.Agent); err != nil {
				return nil, usagef("%s: %w", key, err)
			}
			if c.AgentUpstream != "" && choice.Agent != c.Agent { // which would get the other's key
				return nil, usagef("agent-upstream: it is for the service of %s, and %s names %s; leave one out", c.Agent, key, choice.Agent)
			}
			of := c
			of.Agent, of.Model = choice.Agent, choice.Model
			if !own {
				of.Effort, of.PermissionMode, of.AgentArgs = "", "", nil
			}
			agent, options, _, err := a.agent(of, provider)
			if err != nil {
				return nil, err
			}
			chain = append(chain, agents.Link{Agent: agent, Options: options})
		}
		return chain, nil
	}
	if all.next, err = read("fallback", c.Fallback, false); err != nil {
		return all, nil, err
	}
	if all.attempts, err = read("attempts", c.Attempts, true); err != nil {
		return all, nil, err
	}
	all.shares, err = shares(c, append(agents.Chain{all.Link}, all.next...).All(all.attempts).Choices())
	return all, env, err
}

// shares are what agents may use by themselves. A budget of an agent that never works is a mistake.
func shares(c config.Config, list []agents.Choice) (ledger.Shares, error) {
	of, err := ledger.ParseShares(c.BudgetAgents)
	if err != nil {
		return nil, usagef("budget-agents: %w", err)
	}
	names := make([]string, 0, len(list))
	for _, choice := range list {
		names = append(names, choice.String())
	}
	for choice := range of {
		if !slices.Contains(list, choice) {
			return nil, usagef("budget-agents: %s is not an agent of these runs; they have %s", choice, strings.Join(names, ", "))
		}
	}
	return of, nil
}

// agent is the agent that the configuration names, its options, and the environment for the sandbox.
func (a *app) agent(c config.Config, provider sandboxes.Provider) (agents.Agent, agents.Options, []string, error) {
	agent, err := a.agents().Lookup(c.Agent)
	if err != nil {
		return nil, agents.Options{}, nil, &exitError{status: exitUsage, err: err}
	}
	if agent.Describe().Program != "" { // the program is of another of the agents
		c.AgentCommand = nil
	}
	if err := a.checkUpstream(c, agent, provider); err != nil {
		return nil, agents.Options{}, nil, err
	}
	env, err := a.passed(c.AgentEnv)
	isolated := provider.Capabilities().Isolated()
	sandboxEnv := env
	if showsHost(provider) {
		sandboxEnv = append([]string{"PATH=" + a.sandboxPath(c)}, env...)
	}
	options := agents.Options{
		Model: c.Model, Effort: c.Effort, PermissionMode: c.PermissionMode,
		SkipPermissions: c.PermissionMode == "" && (c.SkipPermissions || isolated),
		Args:            c.AgentArgs, Command: c.AgentCommand, Env: env,
	}
	if provider.Name() == "sbx" {
		options.Env = append(agents.Conceal(env, agents.Chain{{Agent: agent}}), sbxPlaceholders(agent)...)
	}
	return agent, options, sandboxEnv, err
}
