package github_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// TestArchived: the error of an archived project names that cause, and not the token.
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

// TestLocked: a locked issue is left to people, and the sweep goes on.
func TestLocked(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	s.Inject(githubtest.Fault{Status: http.StatusForbidden, Body: `{"message":"Unable to comment, it is locked."}`}.At("/comments"))
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"}); trackertest.ClassOf(err) != trackertest.Skip {
		t.Errorf("Report = %v", err)
	}
}
