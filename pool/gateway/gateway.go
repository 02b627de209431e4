// Package gateway lets a sandboxed agent reach its model service and the allowed hosts, and nothing else.
//
// A [Gateway] is the egress proxy of one sandbox, with the options that point the agents at it. The credential stays with
// ralph: the sandbox gets a placeholder. Package pool/run opens a gateway for each sandbox. Network values may be shared; a
// Gateway belongs to one run.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"crypto/rand"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Network describes what isolated runs may reach. Its zero value allows nothing.
type Network struct {
	Allow []egress.Rule // hosts that everything in the sandbox may reach
	// User has the credentials that the agent may use. They stay with ralph: the sandbox gets a placeholder, and ralph puts
	// the credential into requests to the agent's own service.
	User agents.User
	// Upstream replaces the address of the agent's service in every sandbox, for proxies and tests. It may be on this host.
	// The run fails if the agent cannot use another address, or if the sandbox has its own network policy.
	Upstream string
	// Prices are the user's prices, which replace or extend the built-in ones.
	Prices ledger.Prices
	// Models are names of further models that agents may use, or patterns as in path.Match.
	Models []string
	// Account enforces the project's caps; nil: there are none.
	Account *ledger.Account
}

// AgentError means that the agent cannot be used with the present setup. Its text names what is missing.
type AgentError struct{ Err error }

func (e *AgentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AgentError) Unwrap() error { return e.Err }

// Gateway is the egress proxy of one sandbox, with the options that point the agents at it.
type Gateway struct {
	// Socket is the proxy's socket, for sandboxes.Spec.Egress; empty if the provider does not use ralph's proxy.
	Socket string
	// Agents are the usable agents, with options that point them at the proxy.
	Agents agents.Chain
	// Missing has an *AgentError for each unusable agent. At least one agent is usable.
	Missing []error

	proxy        *egress.Proxy
	real         *strings.Replacer // replaces addresses inside the sandbox by the services' real ones
	removeSocket func() error      // removes the folder of the socket; nil: no folder
}

// Config configures a Gateway.
type Config struct {
	Run      string // run ID; part of the temporary folder's name
	Provider sandboxes.Provider
	Network  Network
	Agents   agents.Chain    // empty for commands
	Idle     bool            // no agent is started: skip agents without a login
	Secrets  *redact.Secrets // gets credentials when they are used
	Log      *slog.Logger
	Observe  func(egress.Event) // is called for refused connections; may be nil
	Meter    *Meter             // counts the usage that the agents' services report; nil: no counting
	Limited  func(agent string) // is called by the Meter when a service refuses a request because of a rate limit or overload; may be nil
}

// placeholder returns a value that looks like a credential, for use in the sandbox. It has no value anywhere.
func placeholder() string { return "ralph-placeholder-" + strings.ToLower(rand.Text()) }

// Open starts the egress proxy of a sandbox that needs one.
func (c Config) Open() (*Gateway, error) {
	g := &Gateway{}
	if !c.Provider.Capabilities().Egress {
		return g, c.pointAtUpstream(g)
	}
	config := egress.Config{Allow: c.Network.Allow, Log: c.Log, Observe: c.Observe}
	services := map[string]agents.Service{} // services with an endpoint, by agent name
	var err error
	for _, l := range c.Agents {
		name := l.Agent.Name()
		service, err := c.service(l.Agent)
		if err != nil {
			g.Missing = append(g.Missing, err)
			continue
		}
		g.Agents = append(g.Agents, l)
		if _, known := services[name]; !known && service.Name != "" {
			services[name] = service
			config.Endpoints = append(config.Endpoints, c.endpoint(l.Agent, service))
		}
	}
	if len(g.Agents) == 0 && len(g.Missing) > 0 && !c.Idle {
		return nil, g.Missing[0]
	}
	if g.proxy, err = egress.New(config); err != nil {
		return nil, err
	}
	var dir string
	if dir, g.removeSocket, err = tempdir.ForRun(c.Run); err == nil {
		g.Socket, err = g.proxy.Listen(filepath.Join(dir, "egress"))
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	var addresses []string
	for _, e := range config.Endpoints {
		addresses = append(addresses, g.proxy.URL(e.Name), e.Upstream, hostOf(g.proxy.URL(e.Name)), hostOf(e.Upstream))
	}
	g.real = strings.NewReplacer(addresses...)
	for i, l := range g.Agents {
		o := &g.Agents[i].Options
		o.Env = agents.Conceal(o.Env, c.Agents)
		if service, ok := services[l.Agent.Name()]; ok {
			point(o, l.Agent, service, g.proxy.URL(service.Name), placeholder())
		}
	}
	return g, nil
}

// hostOf returns a URL's host and port.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// point adds the options that make the agent use its service at the address.
func point(o *agents.Options, a agents.Agent, s agents.Service, url, secret string) {
	env, args := a.Describe().Endpoint.ProxySettings(s, url, secret)
	o.Env, o.Args = slices.Concat(o.Env, env), slices.Concat(o.Args, args)
}

// pointAtUpstream points the agents at the upstream that replaces their service, with the user's own credential, if there is no
// proxy between them. Without an upstream it changes nothing.
func (c Config) pointAtUpstream(g *Gateway) error {
	g.Agents = slices.Clone(c.Agents)
	if c.Network.Upstream == "" {
		return nil
	}
	for i, l := range g.Agents {
		if l.Agent.Describe().Endpoint == nil || c.Provider.Capabilities().OwnEgress {
			return fmt.Errorf("agent %s in sandbox %s cannot use the model service at %s", l.Agent.Name(), c.Provider.Name(), c.Network.Upstream)
		}
		user := c.Network.User
		user.Env = slices.Concat(user.Env, l.Options.Env) // without isolation the agent has both environments
		service, err := agents.FindService(l.Agent, user)
		if err != nil {
			return fmt.Errorf("agent %s: %w", l.Agent.Name(), err)
		}
		secret, err := secretSource(service, c.Secrets)(context.Background())
		if err != nil {
			return fmt.Errorf("agent %s: %w", l.Agent.Name(), err)
		}
		point(&g.Agents[i].Options, l.Agent, service, c.Network.Upstream, secret)
	}
	return nil
}

// Check returns an *AgentError about a missing login that would affect every run, or nil if one of the agents is usable.
func (c Config) Check() (first error) {
	for _, l := range c.Agents {
		_, err := c.service(l.Agent)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// service returns the agent's model service. It is zero if the agent reaches its service by itself. It fails with an
// *AgentError if there is no usable login.
func (c Config) service(a agents.Agent) (agents.Service, error) {
	if a.Describe().Endpoint == nil || !c.Provider.Capabilities().Egress {
		return agents.Service{}, nil
	}
	service, err := agents.FindService(a, c.Network.User)
	if err != nil {
		return service, &AgentError{err}
	}
	return service, nil
}

// Counts reports whether ralph reads an agent's usage from the answers of its service.
func Counts(a agents.Agent, c sandboxes.Capabilities) bool {
	return a.Describe().Endpoint != nil && c.Egress && !c.OwnEgress
}

// endpoint returns the agent's service as the proxy serves it in the sandbox.
func (c Config) endpoint(agent agents.Agent, service agents.Service) egress.Endpoint {
	e := egress.Endpoint{
		Name: service.Name, Upstream: service.Upstream, Header: service.Header, Format: service.Format,
		Secret: secretSource(service, c.Secrets), Model: true, AllowPrivate: service.Named,
	}
	if c.Network.Upstream != "" {
		e.Upstream, e.AllowPrivate = c.Network.Upstream, true
	}
	if c.Meter != nil {
		from := newCaller(agent, c.Agents, c.Network.Models)
		e.Admit = func(ctx context.Context, method, path string, body []byte) (egress.Exchange, error) {
			x, err := c.Meter.admit(ctx, from, method, path, body)
			if x == nil {
				return nil, err
			}
			if c.Limited != nil {
				x.limited = func() { c.Limited(from.agent) }
			}
			return x, nil
		}
	}
	for _, r := range service.Routes {
		e.Routes = append(e.Routes, egress.Route{Method: r.Method, Path: r.Path})
	}
	return e
}

// overloaded is the HTTP status of an overloaded model service.
const overloaded = 529

// secretSource returns a function that gets the service's credential and adds it to secrets, so that it is redacted.
func secretSource(service agents.Service, secrets *redact.Secrets) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		value, err := service.Secret(ctx)
		secrets.AddShortLived(value)
		return value, err
	}
}

// RestoreAddresses replaces the service addresses that are only valid in the sandbox by the real ones, in the agents' messages about
// failures. It may be called on nil.
func (g *Gateway) RestoreAddresses(failures ...*agents.Failure) {
	if g == nil || g.real == nil {
		return
	}
	for _, f := range failures {
		if f != nil {
			f.Message = g.real.Replace(f.Message)
		}
	}
}

// Refused returns notices about the connections that the proxy refused. It may be called on nil, and after Close.
func (g *Gateway) Refused() []sandboxes.Notice {
	if g == nil || g.proxy == nil {
		return nil
	}
	var all []sandboxes.Refusal
	list, more := g.proxy.Refusals()
	for _, e := range list {
		if e.Reason == egress.OtherModel { // the meter names the model
			continue
		}
		all = append(all, sandboxes.Refusal{Host: e.Host, Port: e.Port, Reason: string(e.Reason), Count: e.Count})
	}
	return Refusals(all, more)
}

// maxRefusals is the number of refusals that a report lists.
const maxRefusals = 20

// Refusals returns notices about refused connections.
func Refusals(list []sandboxes.Refusal, more int) (told []sandboxes.Notice) {
	for i, r := range list {
		if i == maxRefusals {
			more += len(list) - maxRefusals
			break
		}
		about, what := sandboxes.Subject{Host: r.Host, Port: r.Port}, "was refused"
		switch egress.Reason(r.Reason) {
		case egress.NotAllowed:
			about.Cause = sandboxes.NotAllowed
		case egress.AddressRefused:
			about.Cause = sandboxes.AddressRefused
		case egress.NotResolved, egress.NotConnected: // the proxy allowed it
			what = "was not reached"
		default:
		}
		where := r.Host
		if r.Port != 0 {
			where = net.JoinHostPort(where, strconv.Itoa(r.Port))
		}
		told = append(told, sandboxes.Notice{
			Text:    fmt.Sprintf("network: %s %s (%s), %s", where, what, r.Reason, plural.Of(r.Count, "time")),
			Subject: about,
		})
	}
	if more > 0 {
		told = append(told, sandboxes.Noticef("network: %d more refusals", more))
	}
	return told
}

// Close stops the proxy. It may be called on nil.
func (g *Gateway) Close() error {
	if g == nil || g.proxy == nil {
		return nil
	}
	err := g.proxy.Close()
	if g.removeSocket != nil {
		err = errors.Join(err, g.removeSocket())
	}
	return err
}
