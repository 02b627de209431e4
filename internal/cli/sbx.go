package cli

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// sbxService is an agent's own service: the name that sbx has for it, the variable that may hold its key, the host, and
// the kind of sandbox whose image has the agent and whose proxy knows where its secret goes.
type sbxService struct{ name, variable, host, kind string }

func sbxServiceOf(agent string) (s sbxService, ok bool) {
	switch agent {
	case "claude-code":
		return sbxService{"anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com", "claude"}, true
	case "codex":
		return sbxService{"openai", "OPENAI_API_KEY", "api.openai.com", "codex"}, true
	}
	return s, false
}

// sbxConfig is what the configuration means to sbx. The agent's own service is let through, as in every sandbox.
func sbxConfig(c config.Config, env []string) sbx.Config {
	out := sbx.Config{HostEnv: env, Template: c.Image}
	hosts := c.Allow
	if s, ok := sbxServiceOf(c.Agent); ok {
		out.Agent = s.kind
		out.SecretEnv = map[string]string{s.name: s.variable}
		hosts = append([]string{s.host + ":443"}, hosts...)
	}
	for _, h := range hosts {
		out.Allow = append(out.Allow, sbxRules(h)...)
	}
	return out
}

// sbxRules are the words of sbx for one of ralph's rules: a port each, and two stars for all names below a domain.
func sbxRules(text string) (rules []string) {
	r, err := egress.ParseRule(text)
	if err != nil { // said elsewhere, with what is wrong
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
func sbxPlaceholders(agent string) []string {
	switch agent {
	case "claude-code":
		return []string{"ANTHROPIC_API_KEY=proxy-managed"}
	case "codex":
		return []string{"OPENAI_API_KEY=proxy-managed", "CODEX_API_KEY=proxy-managed"}
	}
	return nil
}

// sbxLogin says whether sbx will have the credential of the agent's service: it takes none of the agent's own logins.
func (d *doctor) sbxLogin(ctx context.Context, p *sbx.Provider, agent string) {
	s, ok := sbxServiceOf(agent)
	if !ok || d.app.host.getenv(s.variable) != "" {
		return
	}
	has, err := p.HasSecret(ctx, s.name)
	switch {
	case err != nil:
		d.warn("sandbox", "sbx: "+err.Error(), "sbx secret ls")
	case !has:
		d.warn("sandbox", "sbx holds no secret for "+s.name+", and "+s.variable+" is not set",
			"ralph sandbox login --oauth "+s.name+", or with a key: ralph sandbox login --stdin "+s.name)
	}
}
