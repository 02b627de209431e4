package github

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
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	// GitHub takes a JWT of at most ten minutes, and of a clock that is a little ahead only when it was issued before.
	jwtLife  = 9 * time.Minute
	jwtEarly = time.Minute
	// An installation token lives an hour; a request that starts with one must be able to end.
	renewEarly = 10 * time.Minute
)

// App is a GitHub App as which ralph acts: an identity of its own, whose permissions the project grants.
type App struct {
	ID           int64
	Installation int64  // 0: that of the project
	PrivateKey   []byte // PEM
	// Tell is told of each token that is obtained; see forge.Told. nil: nobody is.
	Tell func(secret string)
}

// appSource gets installation tokens.
type appSource struct {
	forge.Kept
	minter *minter
}

func (s *appSource) slug(ctx context.Context) (string, error) { return s.minter.slugOf(ctx) }

func (t *Tracker) appSource() *appSource {
	s, _ := t.cfg.Source.(*appSource) // New put it there
	return s
}

// source makes the source of installation tokens, over a stack of its own that speaks as the app.
func (a *App) source(stack forge.Config, project Project) (*appSource, error) {
	key, err := parseKey(a.PrivateKey)
	if err != nil {
		return nil, err
	}
	if a.ID <= 0 {
		return nil, errors.New("log in as a GitHub App: its id is missing")
	}
	m := &minter{app: *a, key: key, project: project}
	stack.Source, stack.CacheDir = forge.Told{Source: m, Tell: a.Tell}, "" // tokens are never kept on disk
	if m.stack, err = forge.New(stack); err != nil {
		return nil, err
	}
	base, err := url.Parse(stack.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("use %q as GitHub's address: %w", stack.BaseURL, err)
	}
	client := m.stack.Client()
	client.Transport = unhurried{m.stack}
	m.api = gh.NewClient(client)
	m.api.BaseURL = base
	s := &appSource{minter: m}
	s.Kept = forge.Kept{Source: forge.Told{Source: installation{m}, Tell: a.Tell}, Early: renewEarly, Now: m.stack.Now}
	return s, nil
}

// minter makes the app's own tokens, JWTs, and asks with them.
type minter struct {
	app     App
	key     *rsa.PrivateKey
	stack   *forge.Stack
	api     *gh.Client
	project Project

	mu      sync.Mutex        // guards what follows
	slug    string            // the app's name in addresses
	granted map[string]string // permissions of the last token
}

// Token is a JWT for the app itself, by the forge's clock.
func (m *minter) Token(context.Context) (forge.Token, error) {
	now := m.stack.Now()
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-jwtEarly).Unix(), "exp": now.Add(jwtLife - jwtEarly).Unix(), "iss": fmt.Sprint(m.app.ID),
	})
	if err != nil {
		return forge.Token{}, fmt.Errorf("sign in as the GitHub App: %w", err)
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, m.key, crypto.SHA256, sum[:])
	if err != nil {
		return forge.Token{}, fmt.Errorf("sign in as the GitHub App: %w", err)
	}
	return forge.Token{Secret: text + "." + enc.EncodeToString(signature), Identity: fmt.Sprintf("app %d", m.app.ID)}, nil
}

func (m *minter) ask(ctx context.Context, method, path string, out any) error {
	req, err := m.api.NewRequest(method, path, nil)
	if err != nil {
		return fmt.Errorf("make request %s %s: %w", method, path, err)
	}
	resp, err := m.api.Do(forge.Decoded(ctx, out), req, nil)
	return explain(ctx, resp, err)
}

func (m *minter) slugOf(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slug != "" {
		return m.slug, nil
	}
	var app appInfo
	if err := m.ask(ctx, http.MethodGet, "app", &app); err != nil {
		return "", err
	}
	m.slug = app.Slug
	return m.slug, nil
}

// grantedNow are the permissions of the installation, known once it has given a token.
func (m *minter) grantedNow() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.granted
}

// installation turns the app's token into one of its installation.
type installation struct{ m *minter }

func (i installation) Token(ctx context.Context) (forge.Token, error) {
	m := i.m
	id := m.app.Installation
	if id == 0 {
		var found installationInfo
		if err := m.ask(ctx, http.MethodGet, "repos/"+m.project.String()+"/installation", &found); err != nil {
			return forge.Token{}, fmt.Errorf("find the app's installation on %s: %w", m.project, err)
		}
		id = found.ID
	}
	var answer installationToken
	// A token more or less does no harm.
	if err := m.ask(forge.Reading(ctx), http.MethodPost, fmt.Sprintf("app/installations/%d/access_tokens", id), &answer); err != nil {
		return forge.Token{}, fmt.Errorf("get a token for the app's installation: %w", err)
	}
	m.mu.Lock()
	m.granted = answer.Permissions
	m.mu.Unlock()
	return forge.Token{Secret: answer.Token, Expires: answer.ExpiresAt, Identity: fmt.Sprintf("app %d/%d", m.app.ID, id)}, nil
}

type appInfo struct {
	Slug string `json:"slug"`
}

// Whole is of the app's own description.
func (a appInfo) Whole() bool { return a.Slug != "" }

type installationInfo struct {
	ID int64 `json:"id"`
}

// Whole is of the project's installation.
func (i installationInfo) Whole() bool { return i.ID > 0 }

type installationToken struct {
	Token       string            `json:"token"`
	ExpiresAt   time.Time         `json:"expires_at"`
	Permissions map[string]string `json:"permissions"`
}

// Whole is of a token just made.
func (t installationToken) Whole() bool { return t.Token != "" }

// parseKey reads an RSA key in either of its PEM forms. Errors hold nothing of it.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(strings.TrimSpace(string(text))))
	if block == nil {
		return nil, errors.New("read the GitHub App's private key: it is no PEM; download it from the app's settings")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); err == nil && ok {
		return key, nil
	}
	return nil, errors.New("read the GitHub App's private key: it is no RSA key; download it from the app's settings")
}
