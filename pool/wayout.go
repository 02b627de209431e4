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
	// Upstream replaces the address of the agent's service; for proxies and tests. It may be on this host.
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

// openWay makes the way out of a run's sandbox that has one; nothing for a provider that leaves the network as it is.
// Credentials are added to the secrets as they are used.
func openWay(
	run string, p sandboxes.Provider, n Network, agent agents.Agent, options agents.Options, log zerolog.Logger, observe func(egress.Event),
	secrets *Secrets,
) (*wayOut, error) {
	w := &wayOut{options: options}
	if !p.Capabilities().Egress {
		return w, nil
	}
	config := egress.Config{Allow: n.Allow, Log: log, Observe: observe}
	pointer, can := agent.(agents.Endpointer)
	var service agents.Service
	if can {
		var err error
		if service, err = pointer.Service(n.User); err != nil {
			return nil, fmt.Errorf("agent %s in sandbox %s: %w", agent.Name(), p.Name(), err)
		}
		e := egress.Endpoint{
			Name: service.Name, Upstream: service.Upstream, Header: service.Header, Format: service.Format,
			Secret: told(service, secrets),
		}
		if n.Upstream != "" {
			e.Upstream, e.AllowPrivate = n.Upstream, true
		}
		for _, r := range service.Routes {
			e.Routes = append(e.Routes, egress.Route{Method: r.Method, Path: r.Path})
		}
		config.Endpoints = []egress.Endpoint{e}
	}
	var err error
	if w.proxy, err = egress.New(config); err != nil {
		return nil, err
	}
	if w.dir, err = tempdir.ForRun(run); err == nil {
		w.socket, err = w.proxy.Listen(filepath.Join(w.dir, "egress"))
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if can {
		env, args := pointer.Point(service, w.proxy.URL(service.Name), placeholder())
		w.options.Env = append(agents.Conceal(options.Env), env...)
		w.options.Args = append(slices.Clone(options.Args), args...)
	}
	return w, nil
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
	var out []string
	list, more := w.proxy.Refusals()
	for _, e := range list {
		out = append(out, fmt.Sprintf("network: %s:%d was refused (%s), %s", e.Host, e.Port, e.Reason, count(e.Count, "time")))
		if len(out) == maxFindings {
			more += len(list) - maxFindings
			break
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("network: %d more refusals", more))
	}
	return out
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
