package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/webhook"
	"github.com/ralph-pool/ralph/tracker"
)

// hooks returns the handler of webhook deliveries for all projects.
func (s *serving) hooks() *webhook.Handler {
	return webhook.New(webhook.Config{Count: s.metrics.Webhook, Find: func(name string) (webhook.Target, error) {
		parts, err := s.service.Parts(name)
		switch {
		case errors.Is(err, service.ErrNotOpen):
			return webhook.Target{}, webhook.ErrNotNow
		case err != nil || parts.Webhook == nil:
			return webhook.Target{}, webhook.ErrNoTarget
		}
		return webhook.Target{Check: parts.Webhook, Wake: func() { s.service.Wake(name) }}, nil
	}})
}

// webhook returns the check of deliveries for an open project, or nil if its tracker sends none or it has no secret.
func (s *serving) webhook(ctx context.Context, a *compose.App, p *compose.Parts) (func(tracker.Delivery) (tracker.Notice, error), error) {
	kind, err := a.TrackerKind(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.WebhookSecretFile == "" && (s.webhookSecret == "" || kind.Webhook == nil) {
		return nil, nil
	}
	if kind.Webhook == nil {
		return nil, p.Wrong("webhook-secret-file", fmt.Errorf("tracker %s sends no webhooks; remove it", kind.Name))
	}
	if _, err := s.secretOf(a, p); err != nil {
		return nil, err
	}
	project, err := p.ProjectOn(ctx, kind)
	if err != nil {
		return nil, err
	}
	return func(d tracker.Delivery) (tracker.Notice, error) {
		secret, err := s.secretOf(a, p) // read it each time: it may have been renewed
		if err != nil {
			return tracker.Notice{}, errNoSecret
		}
		d.Secret, d.Project = []byte(secret), project
		return kind.Webhook(d)
	}, nil
}

// errNoSecret is the answer to a delivery. It names no file, because clients see it.
var errNoSecret = errors.New("webhook-secret-file cannot be read, or its secret is too short")

// secretOf returns the secret of a project's deliveries: from its file, or from the variable.
func (s *serving) secretOf(a *compose.App, p *compose.Parts) (secret string, err error) {
	wrong := func(err error) error { return p.Wrong("webhook-secret-file", err) }
	if secret = s.webhookSecret; p.WebhookSecretFile != "" {
		if secret, err = a.ReadSecretFile("webhook-secret-file", p.WebhookSecretFile); err != nil {
			return "", wrong(err)
		}
	} else {
		wrong = func(err error) error { return exit.Usagef("%s: %w", config.WebhookSecretVariable, err) }
	}
	if len(secret) < compose.MinToken {
		return "", wrong(fmt.Errorf("the secret has fewer than %d characters; make one with: openssl rand -hex 32", compose.MinToken))
	}
	p.Secrets.Add(secret)
	return secret, nil
}
