package github_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

// TestAppOutlivesItsTokens: a run of many hours continues although the installation's token expires each hour.
func TestAppOutlivesItsTokens(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	var secrets sync.Map
	cfg := configOf(s)
	cfg.Token, cfg.App = nil, &tracker.App{ID: githubtest.AppID, PrivateKey: s.UseApp()}
	cfg.OnSecret = func(secret string) { secrets.Store(secret, true) }
	cfg.StateDir = t.TempDir()
	g := open(t, cfg)
	s.AddIssue(githubtest.Issue{Title: "One"})
	for hour := range 6 {
		if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "Working since " + strings.Repeat("|", hour)}); err != nil {
			t.Fatalf("hour %d: %v", hour, err)
		}
		_, secret, err := g.GitCredentials(t.Context())
		if err != nil || !strings.HasPrefix(secret, "ghs_minted") {
			t.Fatalf("hour %d: GitCredentials: %v", hour, err)
		}
		if _, ok := secrets.Load(secret); !ok {
			t.Errorf("hour %d: nobody was told of the new token", hour)
		}
		s.Clock().Advance(52 * time.Minute)
	}
	if c := s.Issue(1).Comments; len(c) != 1 || c[0].Author != githubtest.Bot {
		t.Errorf("comments: %d", len(c))
	}
	if n := s.Minted(); n != 6 {
		t.Errorf("%d tokens in six hours", n)
	}
	secrets.Range(func(secret, _ any) bool {
		if text, ok := secret.(string); !ok || !strings.HasPrefix(text, "ghs_minted") && !strings.HasPrefix(text, "eyJ") {
			t.Error("told of something else")
		}
		return true
	})
	// A revoked token is replaced once.
	s.Revoke("ghs_minted6")
	s.Clock().Advance(-52 * time.Minute)
	if _, err := g.Get(t.Context(), "1"); err != nil || s.Minted() != 7 {
		t.Errorf("after a revocation: %v, %d tokens", err, s.Minted())
	}
}

// TestCommitter: the committer of an app is its bot, in the form that GitHub links to it.
func TestCommitter(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	if name, email, err := open(t, configOf(s)).Committer(t.Context()); name+email != "" || err != nil {
		t.Errorf("with a token, commits are of %s <%s>, %v", name, email, err)
	}
	s.AddUser(githubtest.User{Login: githubtest.Bot, Bot: true, ID: 4001, Permission: "write"})
	cfg := configOf(s)
	cfg.Token, cfg.App = nil, &tracker.App{ID: githubtest.AppID, PrivateKey: s.UseApp()}
	g := open(t, cfg)
	for range 2 {
		name, email, err := g.Committer(t.Context())
		if name != githubtest.Bot || email != "4001+"+githubtest.Bot+"@users.noreply.127.0.0.1" || err != nil {
			t.Errorf("commits are of %s <%s>, %v", name, email, err)
		}
	}
	asked := 0
	for _, c := range s.Calls() {
		if strings.Contains(c.Path, "/users/") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d times asked", asked)
	}
}

// TestAppWithSkewedClock: the app's JWT uses GitHub's clock once it is known.
func TestAppWithSkewedClock(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	cfg := configOf(s)
	cfg.Token, cfg.App = nil, &tracker.App{ID: githubtest.AppID, Installation: 4242, PrivateKey: s.UseApp()}
	behind := forgetest.NewClock()
	behind.Advance(-30 * time.Minute)
	cfg.HTTP.Clock = behind
	g := open(t, cfg)
	s.AddIssue(githubtest.Issue{Title: "One"})
	_, first := g.Get(t.Context(), "1") // the refusal states the time
	if _, err := g.Get(t.Context(), "1"); err != nil {
		t.Errorf("Get = %v, then %v", first, err)
	}
}

func TestAppKey(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	for name, key := range map[string]string{
		"no PEM":  "secret-material",
		"no RSA":  "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LW1hdGVyaWFs\n-----END PRIVATE KEY-----\n",
		"nothing": "",
	} {
		cfg := configOf(s)
		cfg.Token, cfg.App = nil, &tracker.App{ID: 1, PrivateKey: []byte(key)}
		_, err := github.New(cfg)
		if err == nil || !strings.Contains(err.Error(), "download it from the app's settings") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: New = %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := "https://github.com/acme/widgets"
	for want, settings := range map[string]tracker.Settings{
		"want …/OWNER/NAME":          {Project: "https://github.com/../x/y"},
		"want a token source or":     {Project: good, MarkerKey: make([]byte, 16)},
		"the marker key has 5 bytes": {Project: good, MarkerKey: []byte("short"), Token: token.Fixed("x")},
	} {
		if _, err := github.New(forge.Config{Settings: settings}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}
