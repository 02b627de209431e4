package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// trustedAuthors reads the issue and returns the trusted authors, and the requests about people.
func trustedAuthors(t *testing.T, s *githubtest.Server, g *github.Tracker) (trusted string, all int, asked []forgetest.Call) {
	t.Helper()
	s.Calls()
	i, err := g.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range i.Comments {
		if c.Trusted {
			names = append(names, c.Author)
		}
	}
	for _, c := range s.Calls() {
		if strings.Contains(c.Path, "/collaborators") {
			asked = append(asked, c)
		}
	}
	return strings.Join(names, " "), len(i.Comments), asked
}

// TestListOfPeople: accounts with write permission are trusted by ID, and only a complete list excludes other accounts.
func TestListOfPeople(t *testing.T) {
	t.Parallel()
	entry := func(id int64, kind string, push bool) string {
		return fmt.Sprintf(`{"id":%d,"login":"x","type":%q,"permissions":{"pull":true,"push":%v}}`, id, kind, push)
	}
	for name, c := range map[string]struct {
		status  int
		entries []string
		body    string
		trusted string
		asked   int // requests about one account; a malformed list costs three more
	}{
		"both":                    {entries: []string{entry(4001, "User", true), entry(4002, "User", true)}, trusted: "grace heidi"},
		"one":                     {entries: []string{entry(4002, "User", true)}, trusted: "heidi"},
		"may only read":           {entries: []string{entry(4001, "User", false), entry(4002, "User", true)}, trusted: "heidi"},
		"a bot":                   {entries: []string{entry(4001, "Bot", true), entry(4002, "User", true)}, trusted: "heidi"},
		"permission is not known": {status: http.StatusUnprocessableEntity, body: `{"message":"no"}`, trusted: "grace heidi", asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := start(t)
			s.AddUser(githubtest.User{Login: "grace", ID: 4001, Permission: "write"})
			s.AddUser(githubtest.User{Login: "heidi", ID: 4002, Permission: "admin"})
			s.AddIssue(githubtest.Issue{Title: "One"})
			s.AddComment(1, "grace", "Hello.")
			s.AddComment(1, "heidi", "Hello.")
			f := githubtest.Fault{Status: max(c.status, http.StatusOK), Body: c.body}
			if f.Body == "" {
				f.Body = "[" + strings.Join(c.entries, ",") + "]"
			}
			s.Inject(f.At("/collaborators"))
			trusted, _, asked := trustedAuthors(t, s, g)
			if trusted != c.trusted || len(asked) != 1+c.asked {
				t.Errorf("trusted %q after %d questions about one, want %q after %d", trusted, len(asked)-1, c.trusted, c.asked)
			}
		})
	}
}
