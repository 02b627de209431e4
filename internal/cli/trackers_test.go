package cli

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// hangUp ends a tracker's connections.
func hangUp(t *testing.T, forge tracker.Tracker) {
	t.Helper()
	switch c := forge.(type) {
	case interface{ Close() error }:
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	case interface{ Close() }:
		c.Close()
	}
}

// TestPriorityLabels: the configured labels take the place of those that many projects use, on both forges.
func TestPriorityLabels(t *testing.T) {
	t.Parallel()
	labels := []string{"Urgent", "P1", "severity=high", "other"}
	for name, open := range map[string]func(t *testing.T) (config.Config, []string){
		"github": func(t *testing.T) (config.Config, []string) {
			t.Helper()
			s := githubtest.New(t)
			for _, l := range labels {
				s.AddIssue(githubtest.Issue{Title: l, Labels: []string{l}})
			}
			return config.Config{Project: "http://" + s.Host() + "/acme/widgets.git", ForgeURL: s.BaseURL()}, []string{"GITHUB_TOKEN=" + githubtest.Token}
		},
		"gitlab": func(t *testing.T) (config.Config, []string) {
			t.Helper()
			s := gitlabtest.New(t)
			p, ada := s.AddProject("group/project"), s.AddUser(gitlabtest.User{Username: "ada"})
			p.SetMember(ada, gitlabtest.Maintainer)
			s.AddToken(ada, "glpat-testtoken0123456789", time.Time{}, "api")
			for _, l := range labels {
				p.AddIssue(gitlabtest.Issue{Title: l, Author: ada, Labels: []string{l}})
			}
			return config.Config{Project: p.Remote(), ForgeURL: s.URL}, []string{"GITLAB_TOKEN=glpat-testtoken0123456789"}
		},
	} {
		for _, c := range []struct {
			configured []string
			want       string
		}{
			{nil, "Urgent 0, P1 2, severity=high 0, other 0"},
			{[]string{"urgent=1", "severity=high=7"}, "Urgent 1, P1 0, severity=high 7, other 0"},
		} {
			t.Run(fmt.Sprint(name, c.configured), func(t *testing.T) {
				t.Parallel()
				cfg, env := open(t)
				cfg.Tracker, cfg.PriorityLabels = name, c.configured
				p := &parts{Config: cfg, state: filepath.Join(t.TempDir(), "state"), secrets: &pool.Secrets{}}
				var err error
				if p.tracker, err = (&app{host: Host{Env: env}}).tracker(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				defer hangUp(t, p.tracker)
				l, err := p.tracker.List(t.Context(), tracker.Query{})
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				for n, i := range l.Issues {
					if n > 0 {
						got += ", "
					}
					got += fmt.Sprint(i.Title, " ", i.Priority)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("priorities (-want +got):\n%s", diff)
				}
			})
		}
	}
}
