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

// hooks takes deliveries for the projects of the service.
func (s *serving) hooks() *webhook.Handler {
	return webhook.New(webhook.Config{Log: s.log, Count: s.metrics.Webhook, Find: func(name string) (webhook.Target, error) {
		parts, err := s.service.Parts(name)
		switch {
		case errors.Is(err, service.ErrNotOpen):
			return webhook.Target{}, webhook.ErrNotNow
		case err != nil || parts.Webhook == nil:
			return webhook.Target{}, webhook.ErrNoTarget
		}
		return webhook.Target{Check: parts.Webhook, Dir: parts.Dir, Wake: func() { s.service.Wake(name) }}, nil
	}})
}

// webhook checks deliveries for an open project; nil: it takes none, because its tracker sends none or there is no secret.
func (s *serving) webhook(ctx context.Context, a *compose.App, p *compose.Parts) (func(tracker.Delivery) (tracker.Notice, error), error) {
	kind, err := a.TrackerKind(ctx, p)
	if err != nil {
		return nil, err
	}
	secret := s.webhookSecret
	if p.WebhookSecretFile != "" {
		if secret, err = a.ReadSecretFile("webhook-secret-file", p.WebhookSecretFile); err != nil {
			return nil, p.Wrong("webhook-secret-file", err)
		}
	}
	if p.WebhookSecretFile == "" && (secret == "" || kind.Webhook == nil) {
		return nil, nil
	}
	if kind.Webhook == nil {
		return nil, p.Wrong("webhook-secret-file", fmt.Errorf("tracker %s sends no webhooks; remove it", kind.Name))
	}
	if len(secret) < compose.MinToken {
		short := fmt.Errorf("the secret has fewer than %d characters; make one with: openssl rand -hex 32", compose.MinToken)
		if p.WebhookSecretFile == "" {
			return nil, exit.Usagef("%s: %w", config.WebhookSecretVariable, short)
		}
		return nil, p.Wrong("webhook-secret-file", short)
	}
	p.Secrets.Add(secret)
	project, err := p.ProjectOn(ctx, kind)
	if err != nil {
		return nil, err
	}
	return func(d tracker.Delivery) (tracker.Notice, error) {
		d.Secret, d.Project = []byte(secret), project
		return kind.Webhook(d)
	}, nil
}
