package cli

import (
	"slices"

	"github.com/ralph-pool/ralph/agents"
)

// agents are the agents to choose from.
func (a *app) agents() agents.Registry {
	if a.host.Agents != nil {
		return agents.NewRegistry(a.host.Agents...)
	}
	return agents.NewRegistry(agents.Builtin()...)
}

// about is the description of the agent of that name; zero for a name that there is not.
func (a *app) about(name string) agents.Description {
	agent, err := a.agents().Lookup(name)
	if err != nil {
		return agents.Description{}
	}
	return agent.Describe()
}

// commanded are the agents whose program the user names with agent-command.
func (a *app) commanded() (names []string) {
	for _, agent := range a.agents().All() {
		if agent.Describe().Program == "" {
			names = append(names, agent.Name())
		}
	}
	return names
}

// user is whose logins the agents use.
func (a *app) user() agents.User {
	return agents.User{Env: a.host.Env, Home: a.host.getenv("HOME")}
}

// merged is the list with those of more that it does not have.
func merged(list, more []string) []string {
	for _, item := range more {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}
