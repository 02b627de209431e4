package github_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestNoPermissionSaid: an answer without a permission grants none.
func TestNoPermissionSaid(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{}", `{"permission":""}`, `{"permission":"admin"}`, `{"permission":"admin","user":{}}`, `{"permission":"admin","user":null}`} {
		s := githubtest.New(t)
		s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
		s.AddComment(1, "ada", "Please.")
		g := open(t, configOf(s))
		refused := githubtest.Fault{Status: http.StatusForbidden, Body: `{"message":"Must have push access"}`}.At("/collaborators")
		about := githubtest.Fault{Status: http.StatusOK, Body: body}.At("/permission")
		s.Inject(func(c forgetest.Call) *githubtest.Fault {
			if f := refused(c); f != nil {
				return f
			}
			return about(c)
		})
		i, err := g.Get(t.Context(), "1")
		if err != nil || i.Comments[0].Trusted {
			t.Errorf("%s: comment %+v, %v", body, i.Comments, err)
		}
		if _, err := g.Approved(t.Context(), i, "no-human"); err == nil || !strings.Contains(err.Error(), "no write permission") {
			t.Errorf("%s: approved: %v", body, err)
		}
	}
}

// TestRequestWithoutNumber: after an incomplete answer ralph checks whether the request exists.
func TestRequestWithoutNumber(t *testing.T) {
	t.Parallel()
	request := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1"}
	for _, effect := range []bool{true, false} {
		for _, body := range []string{"{}", "null", "", `{"number": 4}`, `{"number": 4, "html_url": "http://x/4", "state": "open"}`} {
			s, g := start(t)
			s.AddIssue(githubtest.Issue{Title: "One"})
			s.Inject(func(c forgetest.Call) *githubtest.Fault {
				if c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/pulls") {
					return &githubtest.Fault{Status: http.StatusOK, Body: body, Effect: effect}
				}
				return nil
			})
			ref, err := g.OpenRequest(t.Context(), request)
			var away *tracker.UnavailableError
			switch {
			case effect && (err != nil || ref.Number != 2 || !strings.HasSuffix(ref.URL, "/pull/2")):
				t.Errorf("answer %q after the effect: %+v, %v, want the request that is there", body, ref, err)
			case !effect && !errors.As(err, &away):
				t.Errorf("answer %q without an effect: %+v, %v, want *UnavailableError", body, ref, err)
			}
			if n := len(s.Pulls()); effect != (n == 1) {
				t.Errorf("answer %q: %d requests", body, n)
			}
		}
	}
}

// TestUnbelievedChange: an answer that does not show the change is a failure.
func TestUnbelievedChange(t *testing.T) {
	t.Parallel()
	labelled := `[{"name":"no-human"}]`
	for name, c := range map[string]struct {
		path, body string
		change     tracker.Change
	}{
		"add":    {"/labels", labelled, tracker.Change{AddLabels: []string{"in review"}}},
		"remove": {"/labels/no-human", labelled, tracker.Change{RemoveLabels: []string{"no-human"}}},
		"null":   {"/labels/no-human", "null", tracker.Change{RemoveLabels: []string{"no-human"}}},
		"object": {"/labels/no-human", "{}", tracker.Change{RemoveLabels: []string{"no-human"}}},
	} {
		s, g := start(t)
		s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
		s.Inject(githubtest.Fault{Status: http.StatusOK, Body: c.body}.At(c.path))
		var away *tracker.UnavailableError
		if err := g.Change(t.Context(), "1", c.change); !errors.As(err, &away) {
			t.Errorf("%s: %v, want *UnavailableError", name, err)
		}
	}
}
