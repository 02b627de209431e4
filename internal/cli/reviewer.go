package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
)

// asReviewer is the configuration with the reviewer in the agent's place; false: there is none. What is set for the agent
// does not hold for the reviewer: without isolation it may only do what its program allows unasked.
func asReviewer(c config.Config) (config.Config, bool) {
	choice, err := agents.ParseChoice(c.Review)
	if err != nil { // nobody, or it was refused when the configuration was read
		return c, false
	}
	c.Agent, c.Model, c.AgentCommand, c.Effort, c.AgentArgs = choice.Agent, choice.Model, c.ReviewCommand, "", nil
	c.PermissionMode, c.SkipPermissions = "", false
	return c, true
}

// reviewer is the second agent that the configuration names.
func (a *app) reviewer(c config.Config, provider sandboxes.Provider) (run.Reviewer, error) {
	first := c.Agent
	c, there := asReviewer(c)
	switch {
	case !there:
		return run.Reviewer{}, nil
	case c.AgentUpstream != "" && c.Agent != first:
		return run.Reviewer{}, usagef("agent-upstream: it is for the service of %s, and review names %s; leave one out", first, c.Agent)
	}
	agent, options, _, err := a.agent(c, provider)
	if err != nil {
		return run.Reviewer{}, fmt.Errorf("review: %w", err)
	}
	if !provider.Capabilities().Isolated() {
		options.PermissionMode = agent.Describe().Looking
	}
	return run.Reviewer{Agent: agent, Options: options, Rounds: cmp.Or(c.ReviewRounds, -1)}, nil
}

// reviewer looks whether the reviewer's program is there, and whether it seems to be logged in.
func (d *doctor) reviewer(ctx context.Context, p *parts) {
	provider, err := d.app.sandbox(ctx, p)
	if err != nil || p.Review == "" {
		return // its own line says what is wrong
	}
	r, err := d.app.reviewer(p.Config, provider)
	if err != nil {
		d.fail("reviewer", err.Error(), "")
		return
	}
	program := r.Agent.Describe().Program
	if program == "" {
		program = r.Options.Command[0]
	}
	if !strings.Contains(program, "/") && d.app.lookPath(program) == "" {
		d.fail("reviewer", agents.NotFound(program), agents.InstallHint+", or choose another with --review")
		return
	}
	d.ok("reviewer", r.Settings().Agent)
	d.login(ctx, p, r.Agent, provider, true)
}
