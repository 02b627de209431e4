package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

var _ Endpointer = Claude{}

// Service finds the credential where claude would, in its order: ANTHROPIC_AUTH_TOKEN, ANTHROPIC_API_KEY,
// CLAUDE_CODE_OAUTH_TOKEN (of `claude setup-token`: a subscription, for a year), and the subscription login in
// ~/.claude/.credentials.json. That one ends after some hours and is renewed by claude on the host, not here: for
// unattended work a token of `claude setup-token` is the better choice. Keys that a helper program prints, and the
// clouds' own logins (Bedrock, Vertex, Foundry), stay with the agent.
func (c Claude) Service(u User) (Service, error) {
	if name, _ := u.first("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"); name != "" {
		return Service{}, flawEndpoint(c.Name(), name+" signs requests inside the agent")
	}
	s := Service{
		Name: "anthropic", Upstream: cmp.Or(u.value("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
		Header: "Authorization", Format: "Bearer %s",
		Routes: []Route{
			{"POST", "/v1/messages"}, {"POST", "/v1/messages/count_tokens"},
			{"GET", "/v1/models*"}, {"HEAD", "/"}, // by which claude sees whether it is online
		},
	}
	name, value := u.first("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
	if name != "" {
		s.Login, s.placeholder, s.Secret = name, name, held(value)
		if name == "ANTHROPIC_API_KEY" {
			s.Header, s.Format = "X-Api-Key", "%s"
		}
		return s, nil
	}
	s.Login, s.placeholder = filepath.Join(u.Home, ".claude", ".credentials.json"), "CLAUDE_CODE_OAUTH_TOKEN"
	s.Secret = func(context.Context) (string, error) { return claudeSubscription(s.Login, time.Now()) }
	if _, err := s.Secret(context.Background()); err != nil {
		return Service{}, flaw(c.Name(), "%v; %s", err, claudeLogin)
	}
	return s, nil
}

// claudeSubscription reads the login that claude keeps in its home.
func claudeSubscription(path string, now time.Time) (string, error) {
	var file struct {
		Login struct {
			AccessToken string `json:"accessToken"`
			ExpiresAt   int64  `json:"expiresAt"` // milliseconds
		} `json:"claudeAiOauth"`
	}
	if err := readLogin(path, &file); err != nil {
		return "", err
	}
	switch {
	case file.Login.AccessToken == "":
		return "", fmt.Errorf("no login in %s", path)
	case file.Login.ExpiresAt != 0 && now.UnixMilli() >= file.Login.ExpiresAt:
		return "", errors.New("the login has expired; run claude once, or use a token of claude setup-token")
	}
	return file.Login.AccessToken, nil
}

// Point sets the base URL, and the placeholder in the variable that makes claude log in in the way of the service. What
// claude would send elsewhere is switched off.
func (Claude) Point(s Service, url, placeholder string) (env, args []string) {
	return []string{
		"ANTHROPIC_BASE_URL=" + url, s.placeholder + "=" + placeholder,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}, nil
}

// flawEndpoint says why an agent's service can have no endpoint.
func flawEndpoint(agent, why string) error {
	return fmt.Errorf("agent %s: %w: %s; pass what it needs with --agent-env", agent, ErrNoEndpoint, why)
}
