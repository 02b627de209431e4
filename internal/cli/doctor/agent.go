package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// versionTime is how long an agent's --version may take.
const versionTime = 20 * time.Second

// agent checks that the agent's program exists, and seems to be logged in.
func (d *doctor) agent(ctx context.Context, p *compose.Parts) {
	provider, err := d.app.Sandbox(ctx, p)
	if err != nil {
		// The check of the sandbox reports err.
		provider = sandboxes.NewNone(sandboxes.NoneConfig{Env: d.app.Host.Env, Deny: d.app.Trackers.SecretVars()})
	}
	agent, options, _, err := d.app.Agent(p.Config, provider)
	if err == nil {
		err = agents.Check(agent, options)
	}
	var inv agents.Invocation
	if err == nil {
		inv, err = agent.Invocation(agents.Request{Prompt: "-", Options: options})
	}
	if err != nil {
		d.fail("agent", err.Error(), "")
		return
	}
	program := cmp.Or(agent.Describe().Program, inv.Argv[0])
	if provider.Capabilities().Isolated() && !compose.ShowsHost(provider) {
		d.inside = program
		if slices.ContainsFunc(options.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
			d.inside = "" // the program may be in any of its folders
		}
		if agent.Describe().Program != "" {
			d.login(ctx, p, agent, provider, len(p.Fallback) == 0)
		}
		return
	}
	named := agent.Describe().Program == "" // by agent-command
	if !named {
		program = inv.Argv[0]
	}
	found := d.app.LookPath(program)
	switch {
	case found == "":
		d.fail("agent", agents.NotFound(program), hint.Agent)
		return
	case named:
		d.command(p, provider, agent.Name(), options, found)
		return
	}
	out, warnings := proc.NewTail(1<<10), proc.NewTail(1<<10)
	limit, cancel := context.WithTimeoutCause(ctx, versionTime, errors.New("no answer in time"))
	defer cancel()
	ended, err := proc.Run(limit, proc.Spec{
		Argv: []string{inv.Argv[0], "--version"}, Dir: p.Top, Env: d.app.Host.Env, Stdout: out, Stderr: warnings,
	})
	version, said := strings.TrimSpace(out.String()), strings.TrimSpace(warnings.String())
	switch {
	case err != nil:
		d.fail("agent", fmt.Sprintf("%s: %v", agent.Name(), err), hint.Agent)
	case ended.Code != 0:
		d.fail("agent", fmt.Sprintf("%s --version: exit status %d: %s", inv.Argv[0], ended.Code, cmp.Or(said, version)), "")
	default:
		d.ok("agent", fmt.Sprintf("%s: %s", agent.Name(), cmp.Or(version, said)))
		d.login(ctx, p, agent, provider, len(p.Fallback) == 0)
	}
	if !provider.Capabilities().Isolated() && !options.SkipPermissions && options.PermissionMode == "" {
		d.warn("agent", "it asks before it acts, but nobody is there to answer", "--skip-permissions, or --permission-mode MODE")
	}
}

// command reports the user's own agent, whose program was found, and which of its files the sandbox does not show.
func (d *doctor) command(p *compose.Parts, provider sandboxes.Provider, agent string, options agents.Options, found string) {
	line := agent + " " + strings.Join(options.Command, " ")
	files := slices.Concat([]string{work.Interpreter(found)}, options.Command[1:], options.Args)
	if hidden := work.HiddenFiles(d.app, p, provider, files); len(hidden) > 0 {
		d.warn("agent", line+": the sandbox does not show "+strings.Join(hidden, ", "),
			"sandbox-show: "+keys.YAML(hidden)+" in your configuration")
		return
	}
	d.ok("agent", line)
}

// inSandbox reports whether the sandbox has the agent's program. A setup may install it.
func (d *doctor) inSandbox(p *compose.Parts, has *bool) {
	name, fix := p.Agent+": "+d.inside, "put it into the image, or mount it: --mount host=…,inside=…,readonly"
	switch {
	case d.inside == "":
	case has == nil && d.app.LookPath(d.inside) == "":
		d.ok("agent", name+" is not on this host; it must be in the sandbox")
	case has == nil:
		d.ok("agent", name+" must be in the sandbox")
	case *has:
		d.ok("agent", name+" is in the sandbox")
	case len(p.Setup)+len(p.Before) > 0:
		d.warn("agent", name+" is not in the sandbox, unless setup or before installs it", fix)
	default:
		d.fail("agent", name+" is not in the sandbox", fix)
	}
}

// login checks for an agent's key or login. It cannot tell whether that is valid; the journal has the result of the latest use. If
// ralph's proxy has to add the credential, a missing one is a failure, unless another agent can take over; alone says that none
// can.
func (d *doctor) login(ctx context.Context, p *compose.Parts, agent agents.Agent, provider sandboxes.Provider, alone bool) {
	found, trouble := d.app.AgentLogin(agent)
	refused := d.refused(ctx, p, agent.Name())
	switch {
	case trouble == "" && refused != nil:
		d.warn("login", fmt.Sprintf("%s, at its latest use: %s", agent.Name(), screen.CleanLine(refused.Message)),
			refused.Class.Advice(agent.Describe().Login))
	case trouble != "" && alone && agent.Describe().Endpoint != nil && provider.Capabilities().Egress:
		d.fail("login", trouble, agent.Describe().Login.Hint)
	case trouble != "":
		d.warn("login", trouble, agent.Describe().Login.Hint)
	case found != "":
		d.ok("login", agent.Name()+": "+found)
	}
}

// refused returns the failure of the agent's latest use on this host if its login was refused or its account had no credit.
func (d *doctor) refused(ctx context.Context, p *compose.Parts, agent string) *agents.Failure {
	runs, _ := p.Journal.Find(ctx, journal.Query{Latest: true}) // without the journal nothing is known
	var last loop.Iteration
	for _, r := range runs {
		for _, it := range r.Facts.Iterations {
			if it.Agent == agent && it.Ended.After(last.Ended) {
				last = it
			}
		}
	}
	if f := last.Failure; f != nil && (f.Class == agents.Auth || f.Class == agents.NoCredit) {
		return f
	}
	return nil
}

// metering reports who counts the agents' usage.
func (d *doctor) metering(ctx context.Context, p *compose.Parts) {
	provider, err := d.app.Sandbox(ctx, p)
	if err != nil {
		return // the check of the sandbox reports it
	}
	c := run.Config{Sandboxes: provider}
	if c.Network, err = d.app.Network(p.Config); err != nil {
		return
	}
	if err := d.app.WithAgent(p, &c); err != nil {
		return
	}
	c.Review, _ = d.app.Reviewer(p.Config, provider) // the check of the reviewer reports it
	uncounted, unpriced := hint.Uncounted(c), hint.Unpriced(c)
	if uncounted != "" && c.Estimated() == (loop.Budget{}) { // nothing depends on it
		d.ok("metering", uncounted)
	} else if uncounted != "" {
		var names []string
		for _, a := range c.Uncounted() {
			names = append(names, a.Name())
		}
		d.warn("metering", uncounted, either("choose an agent whose usage ralph knows with --agent", d.counting(names...)))
	}
	if unpriced != "" {
		var names []string
		for _, who := range c.Unpriced() {
			names = append(names, who.Agent)
		}
		d.warn("metering", unpriced, either("choose a model with a known price (model), set its price (prices), or set a limit in tokens (budget-tokens)",
			d.counting(names...)))
	}
	switch {
	case uncounted+unpriced != "":
	case gateway.Counts(c.Agent, provider.Capabilities()):
		d.ok("metering", "ralph reads the agent's usage from the answers of its model service")
	default:
		d.warn("metering", "the agent's usage is known only from its own reports, after each iteration", d.counting(c.Agent.Name()))
	}
}

// counting returns the fix for agents that the sandbox does not count; "" if no sandbox does, because their services are unknown.
func (d *doctor) counting(names ...string) string {
	if !slices.ContainsFunc(names, func(name string) bool { return d.app.About(name).Endpoint != nil }) {
		return ""
	}
	return "--sandbox native, docker or podman, where ralph's proxy counts it"
}

// either joins two fixes, of which the second may be empty.
func either(fix, other string) string { return strings.TrimSuffix(fix+", or "+other, ", or ") }

// reviewer checks that the reviewer's program exists, and seems to be logged in.
func (d *doctor) reviewer(ctx context.Context, p *compose.Parts) {
	provider, err := d.app.Sandbox(ctx, p)
	if err != nil || p.Review == "" {
		return // the check of the sandbox reports it
	}
	r, err := d.app.Reviewer(p.Config, provider)
	if err != nil {
		d.fail("reviewer", err.Error(), "")
		return
	}
	program := r.Agent.Describe().Program
	if program == "" {
		program = r.Options.Command[0]
	}
	if d.app.LookPath(program) == "" {
		d.fail("reviewer", agents.NotFound(program), hint.Reviewer)
		return
	}
	d.ok("reviewer", r.Settings().Agent)
	d.login(ctx, p, r.Agent, provider, true)
}

// sbxLogin warns if sbx lacks the credential of the agent's service: sbx does not use the agent's own logins.
func (d *doctor) sbxLogin(ctx context.Context, p *sbx.Provider, agent agents.Sbx) {
	if agent.Service == "" || d.app.Host.Getenv(agent.Key) != "" {
		return
	}
	has, err := p.HasSecret(ctx, agent.Service)
	switch {
	case err != nil:
		d.warn("sandbox", "sbx: "+err.Error(), "sbx secret ls")
	case !has:
		d.warn("sandbox", "sbx has no secret for "+agent.Service+", and "+agent.Key+" is not set",
			"ralph sandbox login --oauth "+agent.Service+", or with a key: ralph sandbox login --stdin "+agent.Service)
	}
}
