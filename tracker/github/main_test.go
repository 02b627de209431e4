package github_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configOf returns a tracker's configuration for a fake GitHub.
func configOf(s *githubtest.Server) forge.Config {
	return forge.Config{
		Settings: tracker.Settings{
			Project: "http://" + s.Host() + "/" + githubtest.Owner + "/" + githubtest.Repo, BaseURL: s.BaseURL(),
			Token: token.Fixed(githubtest.Token), MarkerKey: []byte("0123456789abcdef0123456789abcdef"),
		},
		HTTP: transport.Config{Clock: s.Clock(), Timeout: 20 * time.Second},
	}
}

// open makes a tracker that is closed at the end of the test.
func open(t *testing.T, c forge.Config) *github.Tracker {
	t.Helper()
	if c.HTTP.Base == nil {
		c.HTTP.Base = &http.Transport{}
	}
	g, err := github.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

// start makes a fake GitHub and a tracker for it.
func start(t *testing.T) (*githubtest.Server, *github.Tracker) {
	t.Helper()
	s := githubtest.New(t)
	return s, open(t, configOf(s))
}

// reportBody returns a report without its first line.
func reportBody(body string) (string, bool) {
	head, rest, ok := strings.Cut(body, "\n")
	return rest, ok && strings.HasPrefix(head, "<!-- ralph:report ")
}
