package sbx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// oauthLimit is the time limit for a person's login in the browser.
const oauthLimit = 5 * time.Minute

// Need is a service whose secret sbx must hold, with the source of the secret.
type Need struct {
	// Service is the name of the service in sbx, such as "anthropic" or "openai".
	Service string
	// Env is the variable of HostEnv with the secret, or "".
	Env string
	// Secret is the secret itself; it takes precedence over Env.
	Secret string
	// OAuth asks for a login in the browser instead of both. Refresh replaces an existing secret.
	OAuth, Refresh bool
}

// Ensure ensures that sbx holds the secret of a service for all sandboxes of this machine. Without Refresh, an existing
// secret stays. Otherwise a person logs in if OAuth is set, or else Secret or the variable is passed on standard input. out
// receives the output of a login.
func (p *Provider) Ensure(ctx context.Context, n Need, out io.Writer) error {
	if !n.Refresh {
		has, err := p.HasSecret(ctx, n.Service)
		if err != nil || has {
			return err
		}
	}
	if n.OAuth {
		return p.Login(ctx, n.Service, out)
	}
	value := n.Secret
	if value == "" && n.Env != "" {
		value = p.config.lookup(n.Env)
	}
	switch {
	case value != "":
		return p.SetSecret(ctx, n.Service, value)
	case n.Refresh:
		return fmt.Errorf("there is no new secret for %s: give sbx one with: sbx secret set %s", n.Service, n.Service)
	}
	return noSecret(n.Service)
}

// HasSecret reports whether sbx holds a secret of a service for all sandboxes.
func (p *Provider) HasSecret(ctx context.Context, service string) (bool, error) {
	if err := checkService(service); err != nil {
		return false, err
	}
	text, err := p.call(ctx, "secret", "ls", "--json", "--service", service)
	if err != nil {
		return false, err
	}
	has, err := listsSecret(text, service)
	if err != nil {
		return false, fmt.Errorf("read sbx secret ls: %w", err)
	}
	return has, nil
}

// Login lets a person log in to a service in the browser. out receives both outputs of sbx.
func (p *Provider) Login(ctx context.Context, service string, out io.Writer) error {
	if err := checkService(service); err != nil {
		return err
	}
	both := &proc.Merged{To: out}
	_, err := p.program().Limit(oauthLimit).Copy(both, both).Call(ctx, "secret", "set", service, "--oauth")
	return err
}

// SetSecret gives sbx the secret of a service, for all sandboxes or for the scope of the given flags of sbx.
func (p *Provider) SetSecret(ctx context.Context, service, value string, scope ...string) error {
	if err := checkService(service); err != nil {
		return err
	}
	if value == "" || strings.ContainsAny(value, "\n\r\x00") {
		return fmt.Errorf("give sbx the secret of %s: it is empty, or has a line break in it", service)
	}
	_, err := p.program().Input(strings.NewReader(value), 0).Call(ctx, append([]string{"secret", "set", service}, scope...)...)
	if call, ok := errors.AsType[*engine.CallError](err); ok && strings.Contains(call.Message, value) {
		call.Message = "it is refused" // an error must not contain the secret
	}
	return err
}

func checkService(service string) error {
	if service == "" || strings.HasPrefix(service, "-") {
		return fmt.Errorf("%q is not a service of sbx", service)
	}
	return nil
}

// listsSecret decodes the output of "sbx secret ls".
func listsSecret(text, service string) (bool, error) {
	var list struct {
		Secrets *[]struct {
			Scope string `json:"scope"`
			Name  string `json:"name"`
		} `json:"secrets"`
	}
	if err := decode(text, &list); err != nil {
		return false, err
	}
	if list.Secrets == nil {
		return false, errors.New("it has no list of secrets")
	}
	for _, s := range *list.Secrets {
		if s.Name == service && s.Scope == "global" {
			return true, nil
		}
	}
	return false, nil
}
