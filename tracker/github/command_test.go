package github_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestCommandOfReview: what a review itself says is a command too, and a comment may become one by an edit.
func TestCommandOfReview(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	issue := s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	pull := s.AddPull(githubtest.Issue{Title: "One", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/1"})
	s.AddComment(issue, "ada", "Please retry.")
	look := func() []tracker.Command {
		t.Helper()
		list, err := g.Commands(t.Context(), "ralph/")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := look(); len(list) != 0 {
		t.Fatalf("commands %+v", list)
	}
	r := s.AddReview(pull, githubtest.Review{Author: "ada", State: "COMMENTED", Body: "/ralph fix the name"})
	s.AddReview(pull, githubtest.Review{Author: "mallory", State: "COMMENTED", Body: "/ralph fresh"})
	s.Do(issue, func(i *githubtest.Issue, now time.Time) {
		i.Comments[0].Body, i.Comments[0].Updated = "/ralph retry", now
	})
	list := look()
	if len(list) != 2 || list[0].Verb != tracker.Retry || list[1].Verb != tracker.Fix || list[1].Text != "the name" || list[1].Request != pull {
		t.Fatalf("commands %+v", list)
	}
	if err := g.Answer(t.Context(), list[1], tracker.Answer{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Reactions(r.NodeID()); len(got) != 1 || got[0] != "EYES by "+githubtest.Bot {
		t.Errorf("reactions %q", got)
	}
}

// What has been answered costs a start of ralph two requests however many there are, and a comment that is gone meanwhile is no
// command.
func TestManyAnsweredCommands(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	issue := s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	for range 150 {
		s.AddComment(issue, "ada", "/ralph retry")
	}
	if list, err := g.Commands(t.Context(), "ralph/"); err != nil || len(list) != 150 {
		t.Fatalf("%d commands, %v", len(list), err)
	}
	var ids []string
	s.Do(issue, func(i *githubtest.Issue, _ time.Time) {
		i.Comments = slices.Delete(i.Comments, 20, 21)
		for _, c := range slices.Delete(slices.Clone(i.Comments), 70, 71) {
			ids = append(ids, c.NodeID())
		}
	})
	for _, id := range ids {
		s.React(id, githubtest.Bot, "EYES")
	}
	for name, look := range map[string]*github.Tracker{"the same": g, "another": open(t, configOf(s))} {
		s.Calls()
		list, err := look.Commands(t.Context(), "ralph/")
		asked := 0
		for _, c := range s.Calls() {
			if strings.HasSuffix(c.Path, "graphql") {
				asked++
			}
		}
		if err != nil || len(list) != 1 || asked != 2 {
			t.Errorf("%s: %d commands after %d requests, %v", name, len(list), asked, err)
		}
	}
}
