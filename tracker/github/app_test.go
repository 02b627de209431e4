package github_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestAppOutlivesItsTokens: a run of many hours goes on when the installation's token ends each hour.
func TestAppOutlivesItsTokens(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	var told sync.Map
	cfg := configOf(s)
	cfg.Source, cfg.App = nil, &github.App{
		ID: githubtest.AppID, PrivateKey: s.UseApp(time.Hour), Tell: func(secret string) { told.Store(secret, true) },
	}
	cfg.CacheDir = t.TempDir()
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
		if _, ok := told.Load(secret); !ok {
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
	told.Range(func(secret, _ any) bool {
		if text, ok := secret.(string); !ok || !strings.HasPrefix(text, "ghs_minted") && !strings.HasPrefix(text, "eyJ") {
			t.Error("told of something else")
		}
		return true
	})
	// One that was revoked before its time is replaced once.
	s.Revoke("ghs_minted6")
	s.Clock().Advance(-52 * time.Minute)
	if _, err := g.Get(t.Context(), "1"); err != nil || s.Minted() != 7 {
		t.Errorf("after a revocation: %v, %d tokens", err, s.Minted())
	}
}

// TestAppWithSkewedClock: the app's JWT goes by GitHub's clock once that is known.
func TestAppWithSkewedClock(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	cfg := configOf(s)
	cfg.Source, cfg.App = nil, &github.App{ID: githubtest.AppID, Installation: 4242, PrivateKey: s.UseApp(time.Hour)}
	behind := githubtest.NewClock()
	behind.Advance(-30 * time.Minute)
	cfg.Clock = behind
	g := open(t, cfg)
	s.AddIssue(githubtest.Issue{Title: "One"})
	_, first := g.Get(t.Context(), "1") // a refusal tells the time
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
		cfg.Source, cfg.App = nil, &github.App{ID: 1, PrivateKey: []byte(key)}
		_, err := github.New(cfg)
		if err == nil || !strings.Contains(err.Error(), "download it from the app's settings") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: New = %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := github.New(github.Config{Project: github.Project{Owner: "../x", Name: "y"}, MarkerKey: []byte("short")})
	for _, want := range []string{`use "../x/y" as the GitHub project`, "give a token source or an app", "the marker key has 5 bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}

func TestInspectApp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, level, want string }{
		{"issues", "write", "ok the app has what it needs"},
		{"pull_requests", "read", "fail the app lacks pull_requests: write"},
		{"checks", "", "fail the app lacks checks: read"},
		{"workflows", "write", "warn the app may more than ralph needs: workflows: write"},
		{"administration", "read", "ok the app has what it needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			cfg := configOf(s)
			cfg.Source, cfg.App = nil, &github.App{ID: githubtest.AppID, PrivateKey: s.UseApp(time.Hour)}
			s.GrantApp(c.name, c.level)
			for _, f := range open(t, cfg).Inspect(t.Context(), tracker.Expectation{Push: true}) {
				if got := string(f.Severity) + " " + f.Detail; f.What == "permissions" && got != c.want {
					t.Errorf("permissions: %s, want %s", got, c.want)
				}
			}
		})
	}
}
