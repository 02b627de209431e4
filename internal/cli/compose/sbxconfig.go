package compose

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// sbxConfig translates the configuration for sbx. The agent's own service is always allowed, as in every sandbox.
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

// sbxRules translates one of ralph's rules for sbx: one rule per port, and "**." for all names below a domain.
func sbxRules(text string) (rules []string) {
	r, err := egress.ParseRule(text)
	if err != nil { // Network reports it
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

// sbxPlaceholders returns variables with placeholder keys for the agent; sbx's proxy replaces them by the real key.
func sbxPlaceholders(agent agents.Agent) (env []string) {
	for _, name := range agent.Describe().Sbx.Keys {
		env = append(env, name+"=proxy-managed")
	}
	return env
}
