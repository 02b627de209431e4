package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// dialTime is how long a model service may take to accept a connection.
const dialTime = 3 * time.Second

// services checks the services of all agents.
func (d *doctor) services(ctx context.Context, p *compose.Parts) {
	var done []string
	for _, text := range slices.Concat([]string{p.Agent}, p.Attempts, p.Fallback, []string{p.Review}) {
		name, _, _ := strings.Cut(text, ":")
		agent, err := d.app.Agents().Lookup(name)
		if err == nil && !slices.Contains(done, name) { // other checks report an unknown agent
			d.service(ctx, p, agent)
			done = append(done, name)
		}
	}
}

// service checks the address that the user has set for the agent's model service. It connects to it and sends nothing. The usual
// service is not checked: doctor needs no network.
func (d *doctor) service(ctx context.Context, p *compose.Parts, agent agents.Agent) {
	address, from := d.app.ServiceAddress(p.Config, agent)
	if from == "" {
		return
	}
	u, err := url.Parse(address)
	if err != nil || address == "" {
		d.fail("service", fmt.Sprintf("%s: %s is not a URL such as https://gateway.example.com", agent.Name(), from), "correct "+from)
		return
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	c, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	switch {
	case err == nil:
		_ = c.Close()
		d.ok("service", fmt.Sprintf("%s: %s accepts connections", agent.Name(), address))
		return
	case errors.Is(err, syscall.ECONNREFUSED):
		err = errors.New("connection refused")
	}
	d.warn("service", screen.CleanLine(fmt.Sprintf("%s: %s cannot be reached: %v", agent.Name(), address, err)), "start the service, or correct "+from)
}

// parked names the agents for which issues wait.
func (d *doctor) parked(ctx context.Context, p *compose.Parts) {
	list, _ := look.Parked(ctx, d.app, p) // without the journal nothing is known; another check reports that
	for _, one := range list {
		d.warn("parked", screen.CleanLine(one.Sentence()), "`ralph work KEY` works an issue at once")
	}
}
