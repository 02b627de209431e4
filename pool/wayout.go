package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// Network is what isolated runs may reach. Its zero value is nothing at all.
type Network struct {
	Allow []egress.Rule // hosts that everything in the sandbox may reach
	// User is whose credentials the agent may use. They stay with ralph: the sandbox gets a placeholder, and ralph puts
	// the credential into requests to the agent's own service.
	User agents.User
	// Upstream replaces the address of the agent's service, in every sandbox; for proxies and tests. It may be on this
	// host. An agent that cannot be pointed at it, or a sandbox with a policy of its own, makes the run fail.
	Upstream string
}

// wayOut is one run's egress proxy, and what points the agent at it.
type wayOut struct {
	proxy   *egress.Proxy
	dir     string
	socket  string
	options agents.Options
}

// placeholder stands for the credential inside. It looks like one, and is worth nothing anywhere.
func placeholder() string { return "ralph-placeholder-" + strings.ToLower(rand.Text()) }

// leaving is what a way out is made from.
type leaving struct {
	run      string
	provider sandboxes.Provider
	network  Network
	agent    agents.Agent // nil for commands without one
	options  agents.Options
	secrets  *Secrets // gets credentials as they are used
	log      zerolog.Logger
	observe  func(egress.Event) // may be nil
}

// open makes the way out of a run's sandbox that has one; nothing for a provider that leaves the network as it is.
func (l leaving) open() (*wayOut, error) {
	w := &wayOut{options: l.options}
	if !l.provider.Capabilities().Egress {
		return w, l.straight(w)
	}
	config := egress.Config{Allow: l.network.Allow, Log: l.log, Observe: l.observe}
	pointer, service, err := l.service()
	if err != nil {
		return nil, err
	}
	can := pointer != nil
	if can {
		config.Endpoints = []egress.Endpoint{l.endpoint(service)}
	}
	if w.proxy, err = egress.New(config); err != nil {
		return nil, err
	}
	if w.dir, err = tempdir.ForRun(l.run); err == nil {
		w.socket, err = w.proxy.Listen(filepath.Join(w.dir, "egress"))
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if can {
		env, args := pointer.Point(service, w.proxy.URL(service.Name), placeholder())
		w.options.Env = append(agents.Conceal(l.options.Env), env...)
		w.options.Args = append(slices.Clone(l.options.Args), args...)
	}
	return w, nil
}

// straight points the agent itself at the upstream that stands for its service, with the user's own credential: there is
// no proxy between the two. Without an upstream it changes nothing.
func (l leaving) straight(w *wayOut) error {
	if l.network.Upstream == "" || l.agent == nil {
		return nil
	}
	pointer, can := l.agent.(agents.Endpointer)
	if !can || l.provider.Capabilities().OwnEgress {
		return fmt.Errorf("agent %s in sandbox %s cannot be pointed at %s", l.agent.Name(), l.provider.Name(), l.network.Upstream)
	}
	user := l.network.User
	user.Env = slices.Concat(user.Env, l.options.Env) // without a wall it has both
	service, err := pointer.Service(user)
	if err != nil {
		return fmt.Errorf("agent %s: %w", l.agent.Name(), err)
	}
	secret, err := told(service, l.secrets)(context.Background())
	if err != nil {
		return fmt.Errorf("agent %s: %w", l.agent.Name(), err)
	}
	env, args := pointer.Point(service, l.network.Upstream, secret)
	w.options.Env = slices.Concat(l.options.Env, env)
	w.options.Args = slices.Concat(l.options.Args, args)
	return nil
}

// endpoint is the agent's service as the proxy serves it inside.
func (l leaving) endpoint(service agents.Service) egress.Endpoint {
	e := egress.Endpoint{
		Name: service.Name, Upstream: service.Upstream, Header: service.Header, Format: service.Format,
		Secret: told(service, l.secrets),
	}
	if l.network.Upstream != "" {
		e.Upstream, e.AllowPrivate = l.network.Upstream, true
	}
	for _, r := range service.Routes {
		e.Routes = append(e.Routes, egress.Route{Method: r.Method, Path: r.Path})
	}
	return e
}

// told gives the service's credential, which is withheld from then on.
func told(service agents.Service, secrets *Secrets) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		value, err := service.Secret(ctx)
		secrets.Add(value)
		return value, err
	}
}

// refused says what the sandbox was not let through to, for the report.
func (w *wayOut) refused() []string {
	if w == nil || w.proxy == nil {
		return nil
	}
	var all []sandboxes.Refusal
	list, more := w.proxy.Refusals()
	for _, e := range list {
		all = append(all, sandboxes.Refusal{Where: fmt.Sprintf("%s:%d", e.Host, e.Port), Reason: string(e.Reason), Count: e.Count})
	}
	return refusals(all, more)
}

// refusedBy is the same of a closed sandbox that has a policy of its own.
func refusedBy(box sandboxes.Sandbox) []string {
	if r, ok := box.(sandboxes.Refuser); ok {
		return refusals(r.Refused())
	}
	return nil
}

func refusals(list []sandboxes.Refusal, more int) (lines []string) {
	for _, r := range list {
		lines = append(lines, fmt.Sprintf("network: %s was refused (%s), %s", r.Where, r.Reason, count(r.Count, "time")))
		if len(lines) == maxFindings {
			more += len(list) - maxFindings
			break
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("network: %d more refusals", more))
	}
	return lines
}

func (w *wayOut) close() error {
	if w == nil || w.proxy == nil {
		return nil
	}
	err := w.proxy.Close()
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

// refusal tells of one while the run is on.
func (w *worker) refusal(e egress.Event) {
	w.emit(Event{Kind: EventRefused, Text: fmt.Sprintf("%s:%d %s %s", e.Host, e.Port, e.Reason, e.Detail)})
}
