package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

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
	rename := func(who string) func(*githubtest.Server) {
		return func(s *githubtest.Server) {
			s.Do(1, func(i *githubtest.Issue, now time.Time) {
				i.Events = append(i.Events, githubtest.Event{Kind: githubtest.Renamed, Actor: who, From: "a", To: "b", At: now})
			})
		}
	}
	comment := func(who string) func(*githubtest.Server) {
		return func(s *githubtest.Server) { s.AddComment(1, who, "Hello.") }
	}
	unlabel := func(s *githubtest.Server) {
		s.Do(1, func(i *githubtest.Issue, now time.Time) {
			i.Events = append(i.Events, githubtest.Event{Kind: githubtest.Unlabelled, Actor: "ada", Label: "no-human", At: now})
		})
	}
	type steps = []func(*githubtest.Server)
	for name, c := range map[string]struct {
		steps steps
		by    string
		want  string // part of the reason; empty: approved
	}{
		"by an administrator":            {steps{label("ada")}, "ada", ""},
		"with write permission":          {steps{label("grace")}, "grace", ""},
		"with triage only":               {steps{label("trudy")}, "trudy", "who has no write permission"},
		"by somebody unknown":            {steps{label("eve")}, "eve", "who has no write permission"},
		"by a deleted account":           {steps{label("nobody")}, "ghost", "who has no write permission"},
		"by a bot":                       {steps{label("helper[bot]")}, "helper[bot]", "(id 4001), who is a bot that is not listed"},
		"by a listed bot":                {steps{label("friend[bot]")}, "friend[bot]", ""},
		"by ralph":                       {steps{label(githubtest.Bot)}, githubtest.Bot, "is ralph's own account"},
		"a person named like a bot":      {steps{label("fake-bot")}, "fake-bot", "who has no write permission"},
		"never labelled":                 {steps{}, "", "it is not known who set the label"},
		"label was removed":              {steps{label("ada"), unlabel}, "", "it is not known who set the label"},
		"labelled again":                 {steps{label("mallory"), unlabel, label("ada")}, "ada", ""},
		"last labelled by another":       {steps{label("ada"), unlabel, label("mallory")}, "mallory", "who has no write permission"},
		"edited before":                  {steps{edit("mallory"), label("ada")}, "ada", ""},
		"edited after":                   {steps{label("ada"), edit("mallory")}, "ada", "mallory, who has no write permission, edited the text"},
		"edited after by a trusted one":  {steps{label("ada"), edit("grace")}, "ada", ""},
		"edited after by both":           {steps{label("ada"), edit("mallory"), edit("grace")}, "ada", "mallory, who has no write"},
		"edited after by a deleted one":  {steps{label("ada"), edit("")}, "ada", "ghost, who is a deleted account, edited the text"},
		"edited after by a bot":          {steps{label("ada"), edit("helper[bot]")}, "ada", "helper, who is a bot that is not listed"},
		"edited, then labelled again":    {steps{label("ada"), edit("mallory"), unlabel, label("ada")}, "ada", ""},
		"renamed after":                  {steps{label("ada"), rename("mallory")}, "ada", "edited the title"},
		"renamed after by a trusted one": {steps{label("ada"), rename("ada")}, "ada", ""},
		"renamed before":                 {steps{rename("mallory"), label("ada")}, "ada", ""},
		"commented after":                {steps{label("ada"), comment("mallory")}, "ada", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
			s.AddUser(githubtest.User{Login: "trudy", Permission: "read"})
			s.AddUser(githubtest.User{Login: "eve"})
			s.AddUser(githubtest.User{Login: "fake-bot"})
			s.AddUser(githubtest.User{Login: "helper[bot]", Bot: true, ID: 4001, Permission: "write"})
			s.AddUser(githubtest.User{Login: "friend[bot]", Bot: true, ID: 4002, Permission: "write"})
			s.AddIssue(githubtest.Issue{Title: "One", Body: "Text."})
			cfg := configOf(s)
			cfg.TrustedBots = []int64{4002}
			g := open(t, cfg)
			for _, step := range c.steps {
				step(s)
			}
			i, err := g.Get(t.Context(), "1")
			if err != nil {
				t.Fatal(err)
			}
			by, reason := g.Approved(t.Context(), i, "no-human")
			if c.want == "" && reason != nil || c.want != "" && (reason == nil || !strings.Contains(reason.Error(), c.want)) {
				t.Errorf("reason is %v, want %q", reason, c.want)
			}
			if by != c.by {
				t.Errorf("by %q, want %q", by, c.by)
			}
		})
	}
}

// TestTextOfBeforeTheLabel: somebody changes the text back while ralph reads the issue, and then a person sets the label again.
func TestTextOfBeforeTheLabel(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(i *githubtest.Issue, now time.Time){
		"body": func(i *githubtest.Issue, now time.Time) {
			i.Body, i.Edits = "Good.", append(i.Edits, githubtest.Edit{By: "mallory", At: now})
		},
		"title": func(i *githubtest.Issue, _ time.Time) { i.Title = "Good" },
		"":      func(*githubtest.Issue, time.Time) {},
	} {
		s, g := start(t)
		s.AddIssue(githubtest.Issue{Title: "Evil", Body: "Evil.", Labels: []string{"no-human"}, Author: "mallory"})
		i, err := g.Get(t.Context(), "1")
		if err != nil {
			t.Fatal(err)
		}
		s.Do(1, change)
		s.Clock().Advance(time.Minute)
		s.Do(1, func(i *githubtest.Issue, now time.Time) {
			i.Events = append(i.Events, githubtest.Event{Kind: githubtest.Labelled, Actor: "ada", Label: "no-human", At: now})
		})
		_, reason := g.Approved(t.Context(), i, "no-human")
		if changed := reason != nil && strings.Contains(reason.Error(), "changed while it was read"); changed != (name != "") {
			t.Errorf("%q changed: %v", name, reason)
		}
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
	s.Inject(only("/api/graphql", githubtest.Fault{Status: 200, Body: `{"data":null,"errors":[{"type":"FORBIDDEN","message":"no"}]}`}))
	if _, reason := g.Approved(t.Context(), i, "no-human"); reason == nil || !strings.Contains(reason.Error(), "see who edited #1") {
		t.Errorf("reason is %v, want that it cannot be seen who edited", reason)
	}
}

// TestCommentsTrusted: the API's permission decides, not a name.
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

// TestNameThatChangedHands: a name that another account took over does not give trust to the previous one.
func TestNameThatChangedHands(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
	i, err := g.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(only("/collaborators/ada/permission", githubtest.Fault{Status: 200,
		Body: `{"permission":"admin","role_name":"admin","user":{"login":"ada","id":5}}`}))
	if _, reason := g.Approved(t.Context(), i, "no-human"); reason == nil {
		t.Error("approved by another account of the same name")
	}
}
