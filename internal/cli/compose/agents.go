package compose

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Agents returns the registry of agents: those of the Host, else the built-in ones.
func (a *App) Agents() agents.Registry {
	if a.Host.Agents != nil {
		return agents.NewRegistry(a.Host.Agents...)
	}
	return agents.NewRegistry(agents.Builtin()...)
}

// About returns the description of the named agent, or the zero value for an unknown name.
func (a *App) About(name string) agents.Description {
	agent, err := a.Agents().Lookup(name)
	if err != nil {
		return agents.Description{}
	}
	return agent.Describe()
}

// Commanded lists the agents whose program comes from agent-command.
func (a *App) Commanded() (names []string) {
	for _, agent := range a.Agents().All() {
		if agent.Describe().Program == "" {
			names = append(names, agent.Name())
		}
	}
	return names
}

// User returns the user whose logins the agents use.
func (a *App) User() agents.User {
	return agents.User{Env: a.Host.Env, Home: a.Host.Getenv("HOME")}
}

// Union appends to list the items of more that it lacks. It may write to list's array.
func Union(list, more []string) []string {
	for _, item := range more {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// agentsOf is the configured agent, the fallback agents, and the agents of later attempts.
type agentsOf struct {
	agents.Link
	next, attempts agents.Chain
	shares         ledger.Shares
}

// chain builds the configured agents, and returns the environment for the sandbox.
func (a *App) chain(c config.Config, provider sandboxes.Provider) (all agentsOf, env []string, err error) {
	if all.Agent, all.Options, env, err = a.Agent(c, provider); err != nil {
		return all, nil, err
	}
	read := func(key string, list []string, own bool) (chain agents.Chain, err error) {
		for _, text := range list {
			choice, err := agents.ParseChoice(text)
			if err != nil {
				return nil, exit.Usagef("%s: %w", key, err)
			}
			if _, err := a.Agents().Lookup(choice.Agent); err != nil {
				return nil, exit.Usagef("%s: %w", key, err)
			}
			if c.AgentUpstream != "" && choice.Agent != c.Agent { // it would get a key of c.Agent's service
				return nil, exit.Usagef("agent-upstream: it is the service of agent %s, but %s names agent %s; remove one of the two",
					c.Agent, key, choice.Agent)
			}
			of := c
			of.Agent, of.Model = choice.Agent, choice.Model
			if !own {
				of.Effort, of.PermissionMode, of.AgentArgs = "", "", nil
			}
			agent, options, _, err := a.Agent(of, provider)
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

// shares parses budget-agents. It refuses a budget for an agent that is not in list: that is a mistake.
func shares(c config.Config, list []agents.Choice) (ledger.Shares, error) {
	of, err := ledger.ParseShares(c.BudgetAgents)
	if err != nil {
		return nil, exit.Usagef("budget-agents: %w", err)
	}
	names := make([]string, 0, len(list))
	for _, choice := range list {
		names = append(names, choice.String())
	}
	for choice := range of {
		if !slices.Contains(list, choice) {
			return nil, exit.Usagef("budget-agents: these runs do not use %s; their agents: %s", choice, strings.Join(names, ", "))
		}
	}
	return of, nil
}

// Agent returns the configured agent, its options, and the environment for the sandbox.
func (a *App) Agent(c config.Config, provider sandboxes.Provider) (agents.Agent, agents.Options, []string, error) {
	agent, err := a.Agents().Lookup(c.Agent)
	if err != nil {
		return nil, agents.Options{}, nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	if agent.Describe().Program != "" { // agent-command is for an agent without a program of its own
		c.AgentCommand = nil
	}
	if err := a.checkUpstream(c, agent, provider); err != nil {
		return nil, agents.Options{}, nil, err
	}
	env, err := a.AgentEnv(c.AgentEnv)
	sandboxEnv := env
	if ShowsHost(provider) {
		sandboxEnv = append(a.SandboxEnv(c), env...)
	}
	options := agents.Options{
		Model: c.Model, Effort: c.Effort, PermissionMode: c.PermissionMode,
		SkipPermissions: c.SkipPermissions,
		Args:            c.AgentArgs, Command: c.AgentCommand, Env: env,
	}
	options.Address, options.AddressFrom = a.ServiceAddress(c, agent)
	if provider.Name() == "sbx" {
		options.Env = append(agents.Conceal(env, agents.Chain{{Agent: agent}}), sbxPlaceholders(agent)...)
	}
	return agent, options, sandboxEnv, err
}

// ServiceAddress is agents.AddressOf with the key agent-upstream, which comes first.
func (a *App) ServiceAddress(c config.Config, agent agents.Agent) (address, from string) {
	if c.AgentUpstream != "" {
		return c.AgentUpstream, "agent-upstream"
	}
	env, _ := a.AgentEnv(c.AgentEnv) // Agent reports the error
	return agents.AddressOf(agent, agents.User{Env: slices.Concat(a.User().Env, env)})
}

// checkUpstream refuses an agent-upstream that would have no effect: prompts and a key would go to a host that the user did not name.
func (a *App) checkUpstream(c config.Config, agent agents.Agent, provider sandboxes.Provider) error {
	if c.AgentUpstream == "" {
		return nil
	}
	if agent.Describe().Endpoint == nil {
		return exit.Usagef("agent-upstream: ralph does not know the service of agent %s; "+
			"remove the key, and give the program the address with --agent-env", agent.Name())
	}
	if provider.Capabilities().OwnEgress {
		return exit.Usagef("agent-upstream: sandbox %s sends requests through its own proxy; remove the key, or choose another sandbox with --sandbox",
			provider.Name())
	}
	u, err := url.Parse(c.AgentUpstream)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return exit.Usagef("agent-upstream: not a URL such as https://gateway.example.com")
	}
	if _, err := agents.FindService(agent, a.User()); errors.Is(err, agents.ErrNoEndpoint) {
		return exit.Usagef("agent-upstream: %v; or remove the key", err)
	}
	return nil
}

// asReviewer returns the configuration with the reviewer in place of the agent, or false when there is no reviewer. Settings of
// the agent do not apply to the reviewer: without isolation it may only do what its program allows without asking.
func asReviewer(c config.Config) (config.Config, bool) {
	choice, err := agents.ParseChoice(c.Review)
	if err != nil { // no reviewer; an invalid one was refused when the configuration was read
		return c, false
	}
	c.Agent, c.Model, c.AgentCommand, c.Effort, c.AgentArgs = choice.Agent, choice.Model, c.ReviewCommand, "", nil
	c.PermissionMode, c.SkipPermissions = "", false
	return c, true
}

// Reviewer returns the configured reviewer, or the zero value when there is none.
func (a *App) Reviewer(c config.Config, provider sandboxes.Provider) (run.Reviewer, error) {
	first := c.Agent
	c, there := asReviewer(c)
	switch {
	case !there:
		return run.Reviewer{}, nil
	case c.AgentUpstream != "" && c.Agent != first:
		return run.Reviewer{}, exit.Usagef("agent-upstream: it is the service of agent %s, but review names agent %s; remove one of the two",
			first, c.Agent)
	}
	agent, options, _, err := a.Agent(c, provider)
	if err != nil {
		return run.Reviewer{}, fmt.Errorf("review: %w", err)
	}
	if !provider.Capabilities().Isolated() {
		options.PermissionMode = agent.Describe().ReadOnlyMode
	}
	return run.Reviewer{Agent: agent, Options: options, Rounds: cmp.Or(c.ReviewRounds, -1)}, nil
}

// AgentLogin returns where an agent's credential is, or why there is none. Both are empty for an agent without a known credential.
func (a *App) AgentLogin(agent agents.Agent) (found, trouble string) {
	login := agent.Describe().Login
	for _, key := range login.Keys {
		if a.Host.Getenv(key.Env) != "" {
			return key.Env + " is set", ""
		}
	}
	path := login.Path(a.User())
	if path == "" && len(login.Keys) == 0 {
		return "", ""
	}
	err := errors.New("no login")
	if login.Read != nil {
		_, err = login.Read(path)
	}
	if err != nil {
		return "", fmt.Sprintf("agent %s: %v", agent.Name(), err)
	}
	return path, ""
}
