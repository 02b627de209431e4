package github_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// classOf is how the pool classifies an error.
func classOf(err error) string {
	var away *tracker.UnavailableError
	var refused *tracker.RefusedError
	switch {
	case err == nil:
		return "fine"
	case errors.As(err, &refused):
		return "stop"
	case errors.As(err, &away):
		return "retry"
	case errors.Is(err, tracker.ErrNotFound):
		return "gone"
	}
	return "skip"
}

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
		for fault, want := range map[*githubtest.Fault]string{
			{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}:               "stop",
			{Status: http.StatusForbidden, Body: `{"message":"Resource not accessible"}`}:          "stop",
			{Status: http.StatusForbidden, Body: `{"message":"Unable to comment, it is locked."}`}: "skip",
			{Status: http.StatusNotFound, Body: `{"message":"Not Found"}`}:                         "skip",
			{Status: http.StatusGone, Body: `{"message":"Gone"}`}:                                  "skip",
			{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed"}`}:      "skip",
			{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"86400"}}}:    "retry",
			{Status: http.StatusBadGateway}:                                                        "retry",
			{Status: http.StatusOK, Body: `{}`}:                                                    "retry",
			{Status: http.StatusOK, Body: `[null]`}:                                                "retry",
			{Cut: true}:                                                                            "retry",
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
			if err := c.do(g); classOf(err) != want || !met.Load() {
				t.Errorf("%s meets (%v) %d %s: %v is %q, want %q", name, met.Load(), fault.Status, fault.Body, err, classOf(err), want)
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
	if classOf(err) != "stop" || !strings.Contains(err.Error(), "the project is archived") || !strings.Contains(err.Error(), "unarchive it") {
		t.Errorf("Report = %v", err)
	}
}
