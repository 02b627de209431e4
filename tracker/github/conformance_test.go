package github_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: backlog, Commands: true, WithToken: withToken})
}

func TestForge(t *testing.T) {
	t.Parallel()
	trackertest.RunForge(t, host())
}

func TestForgeLarge(t *testing.T) {
	t.Parallel()
	trackertest.RunForgeLarge(t, host())
}

func host() trackertest.Host {
	return trackertest.Host{
		New:    func(t *testing.T) *trackertest.Site { return site(githubtest.New(t)) },
		People: "/collaborators", PeopleList: "/collaborators", Plain: "/permission$|/logs$|/requested_reviewers$|/assignees$", AtOnce: 16, // see TestNoPermissionSaid
		Routes: map[string]trackertest.Route{
			"read comments":    {Method: http.MethodGet, Path: `/issues/1/comments$`},
			"see who approved": {Method: http.MethodGet, Path: `/issues/1/events$`},
			"find a report":    {Method: http.MethodGet, Path: `/issues/1/comments$`},
			"create a report":  {Method: http.MethodPost, Path: `/issues/2/comments$`},
			"edit a report":    {Method: http.MethodPatch, Path: `/issues/comments/\d+$`},
			"add a label":      {Method: http.MethodPost, Path: `/issues/1/labels$`},
			"remove a label":   {Method: http.MethodDelete, Path: `/issues/1/labels/no-human$`},
			"close":            {Method: http.MethodPatch, Path: `/issues/1$`},
			"open a request":   {Method: http.MethodPost, Path: `/pulls$`},
			"edit a request":   {Method: http.MethodPatch, Path: `/pulls/3$`},
		},
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	trackertest.CheckCost(t, site(githubtest.New(t)), "../../docs/forges.md", "GitHub")
}

func withToken(t *testing.T, source tracker.TokenSource) tracker.Tracker {
	c := configOf(githubtest.New(t))
	c.Token = source
	return open(t, c)
}

func turns(s *githubtest.Server) map[trackertest.Turn]func(string) {
	issue := func(change func(*githubtest.Issue)) func(string) {
		return func(key string) {
			n, _ := strconv.Atoi(key) // this test's own number
			s.Do(n, func(i *githubtest.Issue, _ time.Time) { change(i) })
		}
	}
	return map[trackertest.Turn]func(string){
		trackertest.Transferred: issue(func(i *githubtest.Issue) { i.Moved = "other/place" }),
		trackertest.Unseen:      issue(func(i *githubtest.Issue) { i.Moved, i.Unseen = "other/place", true }),
		trackertest.Deleted:     issue(func(i *githubtest.Issue) { i.Deleted = true }),
		trackertest.Renamed:     func(string) { s.Rename("acme/gadgets") },
		trackertest.Hidden: func(string) {
			s.SetRepo(true, false, false)
			s.SetPermission(githubtest.Bot, "none")
		},
		trackertest.NoIssues: func(string) { s.SetRepo(false, false, true) },
		trackertest.Revoked:  func(string) { s.Revoke(githubtest.Token) },
		trackertest.Archived: func(string) { s.SetRepo(false, true, false) },
		trackertest.Demoted:  func(string) { s.SetPermission(githubtest.Bot, "read") },
	}
}

func backlog(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	t.Helper()
	s := githubtest.New(t)
	b := trackertest.Backlog{Site: site(s), Turns: turns(s)}
	for _, seed := range seeds {
		b.Keys = append(b.Keys, strconv.Itoa(b.Site.Issue(seed)))
	}
	b.Tracker = b.Site.Open(t, func(c *forge.Config) {
		c.StateDir = t.TempDir()
		c.Priorities = map[string]int{"type: bug": 2}
	})
	number := func(t *testing.T, key string) int {
		t.Helper()
		n, err := strconv.Atoi(key)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	b.Reports = func(t *testing.T, key string) (out []string) {
		for _, text := range b.Site.Texts(number(t, key), false) {
			if text, ours := reportBody(text); ours {
				out = append(out, text)
			}
		}
		return out
	}
	b.Version = func(t *testing.T, key string) string {
		i := s.Issue(number(t, key))
		return fmt.Sprint(i.Updated.UnixNano(), i.Labels, i.Closed, len(i.Comments))
	}
	return b
}
