package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

// TestApproved tests the cases that only GitHub has: deleted accounts, and edits by bots.
func TestApproved(t *testing.T) {
	t.Parallel()
	label := func(who string) func(*githubtest.Server) {
		return func(s *githubtest.Server) {
			s.Do(1, func(i *githubtest.Issue, now time.Time) {
				i.Labels = append(i.Labels, "no-human")
				i.Events = append(i.Events, githubtest.Event{Kind: githubtest.Labelled, Actor: who, Label: "No-Human", At: now})
			})
		}
	}
	edit := func(who string) func(*githubtest.Server) {
		return func(s *githubtest.Server) {
			s.Do(1, func(i *githubtest.Issue, now time.Time) { i.Edits = append(i.Edits, githubtest.Edit{By: who, At: now}) })
		}
	}
	type steps = []func(*githubtest.Server)
	for name, c := range map[string]struct {
		steps steps
		by    string
		want  string // part of the reason
	}{
		"by a deleted account":          {steps{label("nobody")}, "ghost", "who has no write permission"},
		"by ralph":                      {steps{label(githubtest.Bot)}, githubtest.Bot, "is ralph's own account"},
		"edited after by a deleted one": {steps{label("ada"), edit("")}, "ada", "ghost, who is a deleted account, edited the text"},
		"edited after by a bot":         {steps{label("ada"), edit("helper[bot]")}, "ada", "helper, who is a bot that is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			s.AddUser(githubtest.User{Login: "helper[bot]", Bot: true, ID: 4001, Permission: "write"})
			s.AddIssue(githubtest.Issue{Title: "One", Body: "Text."})
			g := open(t, configOf(s))
			for _, step := range c.steps {
				step(s)
			}
			i, err := g.Get(t.Context(), "1")
			if err != nil {
				t.Fatal(err)
			}
			by, reason := g.Approved(t.Context(), i, "no-human")
			if reason == nil || !strings.Contains(reason.Error(), c.want) {
				t.Errorf("reason is %v, want %q", reason, c.want)
			}
			if by != c.by {
				t.Errorf("by %q, want %q", by, c.by)
			}
		})
	}
}

// TestUnknownEditsAreNotApproved: an issue with an unknown editor is not worked.
func TestUnknownEditsAreNotApproved(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	s.AddComment(1, "mallory", "Hello.")
	i, err := g.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(githubtest.Fault{Status: 200, Body: `{"data":null,"errors":[{"type":"FORBIDDEN","message":"no"}]}`}.At("/api/graphql"))
	if _, reason := g.Approved(t.Context(), i, "no-human"); reason == nil || !strings.Contains(reason.Error(), "see who edited #1") {
		t.Errorf("reason is %v, want that it cannot be seen who edited", reason)
	}
}

// TestCommentsTrusted: the permission in the API decides, not a name.
func TestCommentsTrusted(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
	s.AddUser(githubtest.User{Login: "admin[bot]", Bot: true, Permission: "admin"})
	s.AddIssue(githubtest.Issue{Title: "One"})
	for _, who := range []string{"ada", "grace", "mallory", "admin[bot]", "deleted", "grace"} {
		s.AddComment(1, who, "I am "+who)
	}
	cfg := configOf(s)
	cfg.Token = token.Environment{Names: []string{"X"}, Lookup: func(string) (string, bool) { return githubtest.Token, true }}
	g := open(t, cfg)
	s.Calls()
	i, err := g.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	var trusted []string
	for _, c := range i.Comments {
		if c.Trusted {
			trusted = append(trusted, c.Author)
		}
	}
	if got := strings.Join(trusted, " "); got != "ada grace grace" || len(i.Comments) != 6 {
		t.Errorf("trusted: %s; %d comments", got, len(i.Comments))
	}
	asked := 0
	for _, c := range s.Calls() {
		if strings.Contains(c.Path, "/collaborators") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d requests about people, want one list", asked)
	}
}

// TestNameThatChangedHands: an account gets no trust from a name that another account has taken over.
func TestNameThatChangedHands(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	i, err := g.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(githubtest.Fault{Status: 200,
		Body: `{"permission":"admin","role_name":"admin","user":{"login":"ada","id":5}}`}.At("/collaborators/ada/permission"))
	if _, reason := g.Approved(t.Context(), i, "no-human"); reason == nil {
		t.Error("approved by another account of the same name")
	}
}
