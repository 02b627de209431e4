package sbx

import (
	"context"
	"fmt"
	"io"
)

// CheckAgent reports whether sbx works with an agent of Config.Agents: sbx itself works, and it holds the secret of the
// agent's service or can get it from the host's environment.
func (p *Provider) CheckAgent(ctx context.Context, agent string) error {
	need, err := p.agentNeed(agent)
	if err != nil {
		return err
	}
	if err := p.Check(ctx); err != nil {
		return err
	}
	if p.config.lookup(p.config.SecretEnv[need.Service]) != "" { // each sandbox gets it
		return nil
	}
	has, err := p.HasSecret(ctx, need.Service)
	if err == nil && !has {
		err = noSecret(need.Service)
	}
	return err
}

// EnsureAgent is Ensure for the service of an agent of Config.Agents.
func (p *Provider) EnsureAgent(ctx context.Context, agent string, out io.Writer) error {
	need, err := p.agentNeed(agent)
	if err != nil {
		return err
	}
	return p.Ensure(ctx, need, out)
}

func (p *Provider) agentNeed(agent string) (Need, error) {
	need, known := p.config.Agents[agent]
	if !known {
		return Need{}, fmt.Errorf("sbx has no service for the agent %q", agent)
	}
	return need, nil
}

func noSecret(service string) error {
	return fmt.Errorf("sbx has no secret for %s: give it one with: sbx secret set %s", service, service)
}
