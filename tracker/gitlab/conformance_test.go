package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: seeded, Many: 230, Commands: true, WithToken: withToken})
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
		New:    func(t *testing.T) *trackertest.Site { return newRig(t).site() },
		People: "/members/|/users/", PeopleList: "/members/all", AsksBots: true, Plain: "/trace$", AtOnce: 16,
		Routes: map[string]trackertest.Route{
			"read comments":    {Method: http.MethodGet, Path: `/issues/1/notes$`},
			"see who approved": {Method: http.MethodGet, Path: `/issues/1/resource_label_events$`},
			"find a report":    {Method: http.MethodGet, Path: `/issues/1/notes$`},
			"create a report":  {Method: http.MethodPost, Path: `/issues/2/notes$`},
			"edit a report":    {Method: http.MethodPut, Path: `/issues/1/notes/\d+$`},
			"add a label":      {Method: http.MethodPut, Path: `/issues/1$`},
			"remove a label":   {Method: http.MethodPut, Path: `/issues/1$`},
			"close":            {Method: http.MethodPut, Path: `/issues/1$`},
			"open a request":   {Method: http.MethodPost, Path: `/merge_requests$`},
			"edit a request":   {Method: http.MethodPut, Path: `/merge_requests/1$`},
		},
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	trackertest.CheckCost(t, newRig(t).site(), "../../docs/forges.md", "GitLab")
}

func TestConformanceOlderGitLab(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{Many: 230, Commands: true, New: func(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
		r := newRig(t)
		r.server.WithoutKeyset()
		return r.seed(t, seeds)
	}})
}

func withToken(t *testing.T, source tracker.TokenSource) tracker.Tracker {
	return newRig(t, func(c *forge.Config) { c.Token = source })
}

func seeded(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	return newRig(t, func(c *forge.Config) { c.StateDir = t.TempDir() }).seed(t, seeds)
}

// seed names the blockers of an issue in its text, as people do on instances whose links cannot block.
func (r *rig) seed(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	t.Helper()
	b := trackertest.Backlog{Tracker: withoutCommas{r.Tracker}, Site: r.site(), Turns: r.turns()}
	for _, s := range seeds {
		if s.Priority > 0 {
			s.Labels = append(slices.Clone(s.Labels), fmt.Sprintf("P%d", s.Priority-1))
		}
		for n, blocker := range s.BlockedBy {
			if n == 0 {
				s.Body += "\n\nBlocked by "
			} else {
				s.Body += ", "
			}
			s.Body += "#" + b.Keys[blocker]
		}
		b.Keys = append(b.Keys, fmt.Sprint(b.Site.Issue(s)))
	}
	b.Reports = func(t *testing.T, key string) []string {
		var out []string
		for _, n := range r.project.Notes(r.ralph, number(key)) {
			mark, text, found := strings.Cut(n, "\n")
			if !found || !strings.HasPrefix(mark, "<!-- ralph:report ") {
				t.Errorf("a note of ralph's has no marker: %q", n)
			}
			out = append(out, text)
		}
		return out
	}
	b.Version = func(_ *testing.T, key string) string { return fmt.Sprint(r.project.Writes(number(key))) }
	return b
}

func (r *rig) turns() map[trackertest.Turn]func(string) {
	project := func(change func(*gitlabtest.Project)) func(string) {
		return func(string) { r.project.SetProject(change) }
	}
	return map[trackertest.Turn]func(string){
		trackertest.Deleted: func(key string) {
			r.project.SetIssue(number(key), func(i *gitlabtest.Issue) { i.Deleted = true })
		},
		trackertest.Renamed: func(string) {
			if r.project.Path() == path {
				r.project.MoveTo(path + "-2")
			}
		},
		trackertest.Hidden:   project(func(p *gitlabtest.Project) { p.Hidden = true }),
		trackertest.NoIssues: project(func(p *gitlabtest.Project) { p.NoIssues = true }),
		trackertest.Revoked:  func(string) { r.server.Revoke(secret) },
		trackertest.Archived: project(func(p *gitlabtest.Project) { p.Archived = true }),
	}
}

// withoutCommas replaces the suite's label "type: x, y", which is not valid on GitLab, and hides the label that carries
// the suite's priority.
type withoutCommas struct{ tracker.Tracker }

func (w withoutCommas) Unwrap() tracker.Tracker { return w.Tracker }

func (w withoutCommas) Change(ctx context.Context, key string, c tracker.Change) error {
	add := slices.Clone(c.AddLabels)
	for n := range add {
		add[n] = strings.ReplaceAll(add[n], ",", ";")
	}
	c.AddLabels = add
	return w.Tracker.Change(ctx, key, c)
}

func (w withoutCommas) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := w.Tracker.Get(ctx, key)
	i.Labels = suiteLabels(i.Labels)
	return i, err
}

func (w withoutCommas) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	l, err := w.Tracker.List(ctx, q)
	for n := range l.Issues {
		l.Issues[n].Labels = suiteLabels(l.Issues[n].Labels)
	}
	return l, err
}

func suiteLabels(labels []string) []string {
	var out []string
	for _, l := range labels {
		if len(l) == 2 && l[0] == 'P' {
			continue
		}
		out = append(out, strings.ReplaceAll(l, ";", ","))
	}
	return out
}

func number(key string) int {
	n, _ := forge.Number(key) // the key is this test's own
	return n
}
