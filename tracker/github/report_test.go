package github_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestForgedMarker: a copy of ralph's marker does not make a comment ralph's report.
func TestForgedMarker(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	s.AddIssue(githubtest.Issue{Title: "Two"})
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "run-1", Body: "Genuine."}); err != nil {
		t.Fatal(err)
	}
	genuine := s.Issue(1).Comments[0].Body
	s.AddComment(2, "mallory", genuine)
	s.AddComment(2, githubtest.Bot, genuine) // the proof is for issue 1
	s.AddComment(2, githubtest.Bot, "Quoted:\n"+genuine)
	s.AddComment(2, githubtest.Bot, strings.Replace(genuine, "mac=", "mac=0", 1))
	if err := g.Report(t.Context(), "2", tracker.Report{Run: "run-1", Body: "Ralph's."}); err != nil {
		t.Fatal(err)
	}
	c := s.Issue(2).Comments
	if len(c) != 5 || !strings.HasSuffix(c[4].Body, "\nRalph's.") {
		t.Fatalf("%d comments, want the four forged ones and a new one", len(c))
	}
	for n, body := range []string{genuine, genuine, "Quoted:\n" + genuine} {
		if c[n].Body != body {
			t.Errorf("comment %d was edited: %q", n, c[n].Body)
		}
	}
	i, err := g.Get(t.Context(), "2")
	if err != nil {
		t.Fatal(err)
	}
	// A report by ralph's own account counts as a report, also one of another installation.
	if len(i.Comments) != 3 || i.Comments[0].Author != "mallory" {
		t.Errorf("Get gives %d comments, want mallory's and two of ralph's that are no reports", len(i.Comments))
	}
	for _, c := range i.Comments {
		if c.Trusted {
			t.Errorf("comment of %s is trusted", c.Author)
		}
	}
}

func TestReportTooLong(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	body := "# Report\n\n```text\n" + strings.Repeat("☕ log\n", 20000) + "```\n"
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "run-1", Body: body}); err != nil {
		t.Fatal(err)
	}
	got := s.Issue(1).Comments[0].Body
	if len(got) > 65536 || !utf8.ValidString(got) {
		t.Errorf("comment has %d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	if strings.Count(got, "\n```") != 2 || !strings.HasSuffix(got, "ralph's log)") {
		t.Errorf("the cut leaves the fence open, or says nothing: …%q", got[len(got)-120:])
	}
}

func TestReportOnDeletedIssue(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	n := s.AddIssue(githubtest.Issue{Title: "One"})
	s.Do(n, func(i *githubtest.Issue, _ now) { i.Deleted = true })
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"}); !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("Report = %v, want ErrNotFound", err)
	}
	if err := g.Change(t.Context(), "1", tracker.Change{Close: true}); !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("Change = %v, want ErrNotFound", err)
	}
}
