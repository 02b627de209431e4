package api

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/token"
)

const (
	// GitHub accepts a JWT of at most ten minutes, and rejects one issued in its future.
	jwtLifetime = 9 * time.Minute
	jwtEarly    = time.Minute
	// An installation token lives for an hour; a request that starts with one must be able to end.
	renewEarly = 10 * time.Minute
)

// App creates the tokens of a GitHub App: JWTs for the app itself, and with them tokens for its installation.
type App struct {
	login       tracker.App
	key         *rsa.PrivateKey
	stack       *transport.Stack // authenticates as the app
	api         *gh.Client
	owner, name string // of the project

	mu      sync.Mutex
	bot     string                      // the app's slug; guarded by mu
	granted *gh.InstallationPermissions // permissions of the last token; guarded by mu
}

// Login returns the app and the source of its installation tokens. It calls onSecret with each new token.
func Login(app tracker.App, stack transport.Config, owner, name string, onSecret func(string)) (*App, tracker.TokenSource, error) {
	key, err := parseKey(app.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	if app.ID <= 0 {
		return nil, nil, errors.New("log in as a GitHub App: its id is missing")
	}
	m := &App{login: app, key: key, owner: owner, name: name}
	stack.Source, stack.CacheDir = token.Observed{Source: m, OnSecret: onSecret}, "" // no token is written to disk
	if m.stack, err = transport.New(stack); err != nil {
		return nil, nil, err
	}
	base, err := url.Parse(stack.BaseURL)
	if err != nil {
		return nil, nil, fmt.Errorf("use %q as GitHub's address: %w", stack.BaseURL, err)
	}
	m.api = Client(m.stack, base)
	return m, &token.Cached{Source: token.Observed{Source: installation{m}, OnSecret: onSecret}, Early: renewEarly, Now: m.stack.Now}, nil
}

// Token returns a JWT for the app itself, with times by the forge's clock.
func (m *App) Token(context.Context) (tracker.Token, error) {
	now := m.stack.Now()
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-jwtEarly).Unix(), "exp": now.Add(jwtLifetime - jwtEarly).Unix(), "iss": fmt.Sprint(m.login.ID),
	})
	if err != nil {
		return tracker.Token{}, fmt.Errorf("sign in as the GitHub App: %w", err)
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, m.key, crypto.SHA256, sum[:])
	if err != nil {
		return tracker.Token{}, fmt.Errorf("sign in as the GitHub App: %w", err)
	}
	return tracker.Token{Secret: text + "." + enc.EncodeToString(signature), Identity: fmt.Sprintf("app %d", m.login.ID)}, nil
}

// Close closes the connections. No call may be in progress.
func (m *App) Close() error { return m.stack.Close() }

// Slug returns the app's name in URLs. It asks GitHub once.
func (m *App) Slug(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bot != "" {
		return m.bot, nil
	}
	app, err := One(ctx, func(a *gh.App) bool { return a.GetSlug() != "" },
		func(ctx context.Context) (*gh.App, *gh.Response, error) { return m.api.Apps.Get(ctx, "") })
	if err == nil {
		m.bot = app.GetSlug()
	}
	return m.bot, err
}

// Permissions returns the installation's permissions by name. They are known after its first token.
func (m *App) Permissions() (byName map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, err := json.Marshal(m.granted); err == nil {
		_ = json.Unmarshal(text, &byName) // a map of strings cannot fail
	}
	return byName
}

// installation is the source of tokens for the app's installation on the project.
type installation struct{ *App }

// Token requests a new token.
func (i installation) Token(ctx context.Context) (tracker.Token, error) {
	id := i.login.Installation
	if id == 0 {
		found, err := One(ctx, func(i *gh.Installation) bool { return i.GetID() > 0 },
			func(ctx context.Context) (*gh.Installation, *gh.Response, error) {
				return i.api.Apps.FindRepositoryInstallation(ctx, i.owner, i.name)
			})
		if err != nil {
			return tracker.Token{}, fmt.Errorf("find the app's installation on %s/%s: %w", i.owner, i.name, err)
		}
		id = found.GetID()
	}
	// Repeating the request is safe: an additional token does no harm.
	answer, err := One(transport.WithReadOnly(ctx), func(t *gh.InstallationToken) bool { return t.GetToken() != "" },
		func(ctx context.Context) (*gh.InstallationToken, *gh.Response, error) {
			return i.api.Apps.CreateInstallationToken(ctx, id, &gh.InstallationTokenOptions{})
		})
	if err != nil {
		return tracker.Token{}, fmt.Errorf("get a token for the app's installation: %w", err)
	}
	i.mu.Lock()
	i.granted = answer.GetPermissions()
	i.mu.Unlock()
	return tracker.Token{
		Secret:   answer.GetToken(),
		Expires:  answer.GetExpiresAt().Time,
		Identity: fmt.Sprintf("app %d/%d", i.login.ID, id),
	}, nil
}

// parseKey parses an RSA key in either of its PEM forms. Errors contain nothing of it.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	const where = "download it from the app's settings"
	block, _ := pem.Decode([]byte(strings.TrimSpace(string(text))))
	if block == nil {
		return nil, errors.New("read the GitHub App's private key: it is not PEM; " + where)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); err == nil && ok {
		return key, nil
	}
	return nil, errors.New("read the GitHub App's private key: it is not an RSA key; " + where)
}
