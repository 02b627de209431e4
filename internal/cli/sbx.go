package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// sbxConfig is the configuration in sbx's terms. The agent's own service is let through, as in every sandbox.
func sbxConfig(c config.Config, agent agents.Description, env []string) sbx.Config {
	out := sbx.Config{HostEnv: env, Template: c.Image}
	hosts := slices.Concat(c.Allow, c.AllowPrivate)
	if s := agent.Sbx; s.Service != "" {
		out.Agent = s.Kind
		out.SecretEnv = map[string]string{s.Service: s.Key}
		if u, err := url.Parse(agent.Endpoint.Upstream); err == nil {
			hosts = append([]string{u.Hostname() + ":443"}, hosts...)
		}
	}
	for _, h := range hosts {
		out.Allow = append(out.Allow, sbxRules(h)...)
	}
	return out
}

// sbxRules are the words of sbx for one of ralph's rules: a port each, and two stars for all names below a domain.
func sbxRules(text string) (rules []string) {
	r, err := egress.ParseRule(text)
	if err != nil { // reported elsewhere
		return nil
	}
	ports := r.Ports
	if len(ports) == 0 {
		ports = []int{443, 80}
	}
	host := r.Host
	if strings.HasPrefix(host, "*.") {
		host = "*" + host
	}
	for _, p := range ports {
		rules = append(rules, net.JoinHostPort(host, strconv.Itoa(p)))
	}
	return rules
}

// sbxPlaceholders make the agent believe that it has a key; sbx's proxy puts the true one in its place.
func sbxPlaceholders(agent agents.Agent) (env []string) {
	for _, name := range agent.Describe().Sbx.Keys {
		env = append(env, name+"=proxy-managed")
	}
	return env
}

// sbxLogin warns when sbx will not have the credential of the agent's service: it uses none of the agent's own logins.
func (d *doctor) sbxLogin(ctx context.Context, p *sbx.Provider, agent agents.Sbx) {
	if agent.Service == "" || d.app.host.getenv(agent.Key) != "" {
		return
	}
	has, err := p.HasSecret(ctx, agent.Service)
	switch {
	case err != nil:
		d.warn("sandbox", "sbx: "+err.Error(), "sbx secret ls")
	case !has:
		d.warn("sandbox", "sbx holds no secret for "+agent.Service+", and "+agent.Key+" is not set",
			"ralph sandbox login --oauth "+agent.Service+", or with a key: ralph sandbox login --stdin "+agent.Service)
	}
}

// maxSecret is how many bytes a secret on standard input may have.
const maxSecret = 64 << 10

const sandboxLoginLong = `Give sbx (Docker Sandboxes) the secret of a service, for all its sandboxes on this machine: that of the agent's own service, or
of the one that is named. One that sbx holds already stays. It comes from a login in the browser (--oauth), from standard
input (--stdin), or else from the agent's variable, such as ANTHROPIC_API_KEY. Sbx's proxy puts it into requests; no sandbox
sees it. Other sandboxes take your own logins and keys, and need no login.`

type loginFlags struct{ oauth, stdin, refresh bool }

func newSandboxLoginCommand(a *app) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use: "login [SERVICE]", Short: "Give sbx the secret of a service, or log in to it", Long: sandboxLoginLong,
		Example: "  ralph sandbox login --oauth openai\n  pass show anthropic | ralph sandbox login --stdin anthropic",
		Args:    exit.AtMostOne("service"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runSandboxLogin(cmd, a, f, args) },
	}
	cmd.Flags().BoolVar(&f.oauth, "oauth", false, "log in in the browser, for services that have such a login")
	cmd.Flags().BoolVar(&f.stdin, "stdin", false, "read the secret from standard input")
	cmd.Flags().BoolVar(&f.refresh, "refresh", false, "replace a secret that sbx holds")
	cmd.MarkFlagsMutuallyExclusive("oauth", "stdin")
	a.bind(cmd, 0, "agent", "agent-command")
	return cmd
}

func runSandboxLogin(cmd *cobra.Command, a *app, f loginFlags, args []string) error {
	loaded, err := a.config(cmd)
	if err != nil {
		return err
	}
	service := a.about(loaded.Config.Agent).Sbx.Service
	switch {
	case len(args) == 1:
		service = args[0]
	case service == "":
		return exit.Usagef("the agent %q has no service that sbx knows: name one, as in: ralph sandbox login openai", loaded.Config.Agent)
	}
	need := sbx.Need{Service: service, OAuth: f.oauth, Refresh: f.refresh}
	for _, agent := range a.agents().All() {
		if s := agent.Describe().Sbx; s.Service == service {
			need.Env = s.Key
		}
	}
	if f.stdin {
		if need.Secret, err = readSecret(a.host.Stdin); err != nil {
			return err
		}
	}
	p := sbx.New(sbx.Config{HostEnv: a.host.Env})
	if err := p.Ensure(cmd.Context(), need, a.ui.Err); err != nil {
		return err
	}
	a.ui.Printf("sbx holds the secret of %s\n", screen.CleanLine(service))
	return nil
}

// readSecret reads one line.
func readSecret(in io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	case secret == "":
		return "", exit.Usagef("there is no secret on standard input; pipe it in, or leave --stdin out")
	case len(text) > maxSecret || strings.ContainsAny(secret, "\r\n\x00"):
		return "", exit.Usagef("what is on standard input is no secret: it has more than one line, or more than %d bytes", maxSecret)
	}
	return secret, nil
}
