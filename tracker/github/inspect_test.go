package github_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	scopes := func(list string) githubtest.Access { return githubtest.Access{Login: "ada", Scopes: &list} }
	for name, c := range map[string]struct {
		access githubtest.Access
		set    func(*githubtest.Server, *forge.Config)
		want   tracker.Severity
		says   string // detail of the worst finding
	}{
		"all well":        {access: githubtest.Access{Login: githubtest.Bot}, want: tracker.OK},
		"classic token":   {access: scopes("repo"), want: tracker.OK},
		"public only":     {access: scopes("public_repo"), want: tracker.OK},
		"too little":      {access: scopes("read:org"), want: tracker.Fail, says: "token: classic, lacks the scope repo; it has: read:org"},
		"no scopes":       {access: scopes(""), want: tracker.Fail, says: "it has: none"},
		"too much":        {access: scopes("repo, workflow, delete_repo, admin:org"), want: tracker.Warn, says: "token: classic, with more permissions than ralph needs: workflow, delete_repo, admin:org"},
		"cannot push":     {access: githubtest.Access{Login: "mallory"}, want: tracker.Fail, says: "permissions: may not push to the project"},
		"bad token":       {want: tracker.Fail, says: "401 the token is refused"},
		"archived":        {access: githubtest.Access{Login: githubtest.Bot}, set: func(s *githubtest.Server, _ *forge.Config) { s.SetRepo(false, true, false) }, want: tracker.Fail, says: "is archived"},
		"no issues":       {access: githubtest.Access{Login: githubtest.Bot}, set: func(s *githubtest.Server, _ *forge.Config) { s.SetRepo(false, false, true) }, want: tracker.Fail, says: "has no issues"},
		"label is absent": {access: githubtest.Access{Login: githubtest.Bot}, set: func(s *githubtest.Server, _ *forge.Config) { s.AddLabel("extra") }, want: tracker.OK},
		"token ends soon": {access: githubtest.Access{Login: githubtest.Bot, Ends: forgetest.NewClock().Now().Add(48 * time.Hour)}, want: tracker.Warn, says: "token expiry: 2026-01-03"},
		"clock": {access: githubtest.Access{Login: githubtest.Bot}, set: func(s *githubtest.Server, c *forge.Config) {
			ahead := forgetest.NewClock()
			ahead.Advance(time.Hour)
			c.HTTP.Clock = ahead
		}, want: tracker.Fail, says: "clock: is 1h0m0s ahead of the forge's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			s.AddLabel("No-Human")
			cfg := configOf(s)
			cfg.Token = token.Fixed("token-of-this-test")
			if c.access.Login != "" {
				s.Grant("token-of-this-test", c.access)
			}
			if c.set != nil {
				c.set(s, &cfg)
			}
			worst := tracker.Finding{Severity: tracker.OK}
			rank := []tracker.Severity{tracker.OK, tracker.Warn, tracker.Fail}
			for _, f := range open(t, cfg).Inspect(t.Context(), tracker.Expectation{Labels: []string{"no-human"}, Push: true}) {
				if slices.Index(rank, f.Severity) > slices.Index(rank, worst.Severity) {
					worst = f
				}
				if f.Severity != tracker.OK && f.Fix == "" && f.Subject != tracker.FindingLabels {
					t.Errorf("%s: no fix for %q", f.Subject, f.Detail)
				}
			}
			line := worst.Subject + ": " + worst.Detail
			if worst.Severity != c.want || !strings.Contains(line, c.says) {
				t.Errorf("worst finding is %s %q, want %s %q", worst.Severity, line, c.want, c.says)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddLabel("No-Human")
	want := tracker.Expectation{Labels: []string{"no-human", "in review", "a/b?"}}
	absent := func() string {
		for _, f := range g.Inspect(t.Context(), want) {
			if f.Subject == "labels" {
				return string(f.Severity) + " " + f.Detail
			}
		}
		return ""
	}
	if got := absent(); got != "warn do not exist: in review, a/b?" {
		t.Errorf("labels: %s", got)
	}
	for range 2 {
		if err := g.CreateLabels(t.Context(), want.Labels); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Labels(); !slices.Equal(got, []string{"No-Human", "in review", "a/b?"}) {
		t.Errorf("labels: %q", got)
	}
	if got := absent(); !strings.HasPrefix(got, "ok ") {
		t.Errorf("labels: %s", got)
	}
}
