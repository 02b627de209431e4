package cli

import (
	"errors"
	"net/url"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/sandboxes"
)

// checkUpstream refuses an agent-upstream that would not be used: prompts and a key would go to another host than the one
// that was named.
func (a *app) checkUpstream(c config.Config, agent agents.Agent, provider sandboxes.Provider) error {
	if c.AgentUpstream == "" {
		return nil
	}
	if agent.Describe().Endpoint == nil {
		return usagef("agent-upstream: ralph does not know the service of agent %s; leave it out, and tell the program itself where to go with --agent-env", agent.Name())
	}
	if provider.Capabilities().OwnEgress {
		return usagef("agent-upstream: sandbox %s sends requests by a way of its own; leave it out, or choose another with --sandbox", provider.Name())
	}
	u, err := url.Parse(c.AgentUpstream)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return usagef("agent-upstream: it is not a URL such as https://gateway.example.com")
	}
	if _, err := agents.FindService(agent, a.user()); errors.Is(err, agents.ErrNoEndpoint) {
		return usagef("agent-upstream: %v; or leave it out", err)
	}
	return nil
}
