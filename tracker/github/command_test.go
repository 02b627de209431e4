package github_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestCommandOfReview: the text of a review may also be a command, and an edit may turn a comment into one.
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

// renamed replaces a name in the URLs of comments.
type renamed struct {
	http.RoundTripper
	from, to string
}

func (r renamed) RoundTrip(q *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(q)
	if err != nil || !strings.HasSuffix(q.URL.Path, "/issues/comments") {
		return resp, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	data = bytes.ReplaceAll(data, []byte(r.from), []byte(r.to))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	resp.Header.Del("Content-Length")
	return resp, err
}

// A comment on an issue is recognised as such even in a repository with the name of a part of GitHub's URLs.
func TestCommandOfARepositoryCalledPull(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	issue := s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	s.AddComment(issue, "ada", "/ralph retry")
	c := configOf(s)
	c.HTTP.Base = renamed{&http.Transport{DisableKeepAlives: true}, githubtest.Owner + "/" + githubtest.Repo + "/issues/1#", githubtest.Owner + "/pull/issues/1#"}
	list, err := open(t, c).Commands(t.Context(), "ralph/")
	if err != nil || len(list) != 1 || list[0].Request != 0 {
		t.Errorf("commands %+v, %v", list, err)
	}
}

// Answered commands cost two requests at a start of ralph, however many there are, and a comment deleted meanwhile is not a
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
