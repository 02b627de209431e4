package github_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestStrangersLongTexts: if a stranger's texts make a page too long, ralph reads smaller pages.
func TestStrangersLongTexts(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	c := configOf(s)
	c.HTTP.MaxBody = 2 << 20
	g := open(t, c)
	issue := s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	pull := s.AddPull(githubtest.Issue{Title: "One", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/1"})
	s.AddComment(issue, "ada", "/ralph retry")
	s.AddComment(issue, "ada", "use a map")
	remark := githubtest.Remark{Author: "ada", Path: "a", Line: 1, Body: "not so"}
	s.AddReview(pull, githubtest.Review{Author: "ada", State: "CHANGES_REQUESTED", Body: "no", Remarks: []githubtest.Remark{remark}})
	long := strings.Repeat("a", 65_000)
	for n := range 10 {
		s.AddComment(issue, "mallory", long)
		s.AddPull(githubtest.Issue{Title: "x", Author: "mallory", Body: long}, githubtest.Pull{Head: fmt.Sprint("b", n)})
		s.AddReview(pull, githubtest.Review{Author: "mallory", State: "COMMENTED", Body: long, Remarks: []githubtest.Remark{{Author: "mallory", Path: "a", Line: 1, Body: long}}})
	}
	l, err := g.List(t.Context(), tracker.Query{Labels: []string{"no-human"}})
	if err != nil || len(l.Issues) != 1 {
		t.Errorf("%d issues, %v", len(l.Issues), err)
	}
	i, err := g.Get(t.Context(), "1")
	if err != nil || len(i.Comments) != 11 || i.Comments[0].Body != "use a map" {
		t.Errorf("%d comments, %v", len(i.Comments), err)
	}
	if list, err := g.Commands(t.Context(), "ralph/"); err != nil || len(list) != 1 {
		t.Errorf("%d commands, %v", len(list), err)
	}
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "Done."}); err != nil {
		t.Error(err)
	}
	f, err := g.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
	if err != nil || len(f) != 1 || !strings.Contains(f[0].Feedback, "not so") {
		t.Errorf("follow-ups %.2000v, %v", f, err)
	}
}
