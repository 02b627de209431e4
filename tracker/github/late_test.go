package github_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// TestLateCalls is the table of docs/forges.md: the meaning of a lasting refusal, for each call at a run's end.
func TestLateCalls(t *testing.T) {
	t.Parallel()
	report := func(g *github.Tracker) error {
		return g.Report(t.Context(), "3", tracker.Report{Run: "new", Body: "x"})
	}
	edit := func(g *github.Tracker) error {
		return g.Report(t.Context(), "1", tracker.Report{Run: "old", Body: "y"})
	}
	change := func(c tracker.Change) func(*github.Tracker) error {
		return func(g *github.Tracker) error { return g.Change(t.Context(), "1", c) }
	}
	request := func(head string) func(*github.Tracker) error {
		return func(g *github.Tracker) error {
			_, err := g.OpenRequest(t.Context(), tracker.Request{Head: head, Base: "main", Title: "Fix it", Body: "x"})
			return err
		}
	}
	for name, c := range map[string]struct {
		method, path string
		do           func(*github.Tracker) error
	}{
		"create a report": {http.MethodPost, `/issues/3/comments$`, report},
		"edit a report":   {http.MethodPatch, `/issues/comments/\d+$`, edit},
		"add a label":     {http.MethodPost, `/issues/1/labels$`, change(tracker.Change{AddLabels: []string{"x"}})},
		"remove a label":  {http.MethodDelete, `/issues/1/labels/no-human$`, change(tracker.Change{RemoveLabels: []string{"no-human"}})},
		"close":           {http.MethodPatch, `/issues/1$`, change(tracker.Change{Close: true})},
		"open a request":  {http.MethodPost, `/pulls$`, request("ralph/3")},
		"edit a request":  {http.MethodPatch, `/pulls/2$`, request("ralph/2")},
	} {
		for fault, want := range map[*githubtest.Fault]trackertest.Class{
			{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}:               trackertest.Stop,
			{Status: http.StatusForbidden, Body: `{"message":"Resource not accessible"}`}:          trackertest.Stop,
			{Status: http.StatusForbidden, Body: `{"message":"Unable to comment, it is locked."}`}: trackertest.Skip,
			{Status: http.StatusNotFound, Body: `{"message":"Not Found"}`}:                         trackertest.Skip,
			{Status: http.StatusGone, Body: `{"message":"Gone"}`}:                                  trackertest.Skip,
			{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed"}`}:      trackertest.Skip,
			{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"86400"}}}:    trackertest.Away,
			{Status: http.StatusBadGateway}:                                                        trackertest.Away,
			{Status: http.StatusOK, Body: `{}`}:                                                    trackertest.Away,
			{Status: http.StatusOK, Body: `[null]`}:                                                trackertest.Away,
			{Cut: true}:                                                                            trackertest.Away,
		} {
			s, g := start(t)
			s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
			s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/2", Base: "main"})
			s.AddIssue(githubtest.Issue{Title: "Two", Labels: []string{"no-human"}})
			if err := g.Report(t.Context(), "1", tracker.Report{Run: "old", Body: "x"}); err != nil {
				t.Fatal(err)
			}
			var met atomic.Bool
			s.Inject(func(_ int, r *http.Request) *githubtest.Fault {
				if r.Method != c.method || !regexp.MustCompile(c.path).MatchString(r.URL.Path) {
					return nil
				}
				met.Store(true)
				return fault
			})
			if err := c.do(g); trackertest.ClassOf(err) != want || !met.Load() {
				t.Errorf("%s meets (%v) %d %s: %v is %q, want %q", name, met.Load(), fault.Status, fault.Body, err, trackertest.ClassOf(err), want)
			}
		}
	}
}

// TestArchived: a refusal of an archived project names that, and not the token.
func TestArchived(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	s.SetRepo(false, true, false)
	err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"})
	if trackertest.ClassOf(err) != trackertest.Stop || !strings.Contains(err.Error(), "the project is archived") || !strings.Contains(err.Error(), "unarchive it") {
		t.Errorf("Report = %v", err)
	}
}
