package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Identity is whom ralph's token speaks for.
type Identity struct {
	ID    int64
	Login string
	Bot   bool
}

// identity asks once who we are. An app's token is nobody's, so that the app names its bot.
func (t *Tracker) identity(ctx context.Context) (Identity, error) {
	t.mu.Lock()
	known := t.self
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	path := "user"
	if t.cfg.App != nil {
		slug, err := t.appSource().slug(ctx)
		if err != nil {
			return Identity{}, fmt.Errorf("find out who ralph is on GitHub: %w", err)
		}
		path = "users/" + url.PathEscape(slug+"[bot]")
	}
	var u user
	if _, err := t.call(ctx, http.MethodGet, path, nil, &u); err != nil {
		return Identity{}, fmt.Errorf("find out who ralph is on GitHub: %w", err)
	}
	me := Identity{ID: u.ID, Login: u.Login, Bot: u.Type != "User"}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self = &me
	return me, nil
}

// GitCredentials gives git the token of the API. GitHub takes any user name with it.
func (t *Tracker) GitCredentials(ctx context.Context) (user, secret string, err error) {
	token, err := t.cfg.Source.Token(ctx)
	if err != nil {
		return "", "", fmt.Errorf("get a token for git: %w", err)
	}
	return "x-access-token", token.Secret, nil
}
