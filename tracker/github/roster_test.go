package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// crowd has 150 accounts say 250 things on one issue, ada the first and grace the last, and returns its configuration.
// May is what ralph may do on the project.
func crowd(t *testing.T, may string) (*githubtest.Server, forge.Config) {
	t.Helper()
	s := githubtest.New(t)
	s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
	s.AddUser(githubtest.User{Login: githubtest.Bot, Bot: true, Permission: may})
	s.AddIssue(githubtest.Issue{Title: "One"})
	for n := range 150 {
		s.AddUser(githubtest.User{Login: fmt.Sprint("eve-", n), Permission: "read"})
	}
	s.AddComment(1, "ada", "I am ada.")
	for n := range 248 {
		s.AddComment(1, fmt.Sprint("eve-", n%150), "I am somebody.")
	}
	s.AddComment(1, "grace", "I am grace.")
	c := configOf(s)
	c.StateDir = t.TempDir()
	return s, c
}

// judged reads the issue and returns the trusted authors, and the requests about people.
func judged(t *testing.T, s *githubtest.Server, g *github.Tracker) (trusted string, all int, asked []githubtest.Call) {
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

// TestCrowdIsCheap: the people who may direct ralph are listed once, however many comment; another process makes a
// conditional request.
func TestCrowdIsCheap(t *testing.T) {
	t.Parallel()
	s, c := crowd(t, "write")
	for _, want := range []int{http.StatusOK, http.StatusNotModified} {
		g := open(t, c)
		for n, calls := range []int{1, 0} { // the second look is in the same process
			trusted, all, asked := judged(t, s, g)
			if trusted != "ada grace" || all != 250 {
				t.Errorf("trusted: %q of %d comments", trusted, all)
			}
			if len(asked) != calls || calls == 1 && asked[0].Status != want {
				t.Errorf("look %d: %d requests about people, want %d with status %d", n+1, len(asked), calls, want)
			}
		}
	}
}

// TestCrowdBeyondTheCap: where ralph may not see the list, it asks about the last fifty accounts. Earlier ones are not
// trusted, but their comments are there.
func TestCrowdBeyondTheCap(t *testing.T) {
	t.Parallel()
	s, c := crowd(t, "read")
	trusted, all, asked := judged(t, s, open(t, c))
	if trusted != "grace" || all != 250 {
		t.Errorf("trusted: %q of %d comments, want grace of 250", trusted, all)
	}
	if len(asked) != 1+50 || asked[0].Status != http.StatusForbidden {
		t.Errorf("%d requests about people, want the refused list and 50", len(asked))
	}
}

// TestListOfPeople: accounts with write permission are trusted by id, and only a complete list excludes the others.
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
		asked   int // about one; an answer of another form is asked for three times more
	}{
		"both":                    {entries: []string{entry(4001, "User", true), entry(4002, "User", true)}, trusted: "grace heidi"},
		"one":                     {entries: []string{entry(4002, "User", true)}, trusted: "heidi"},
		"may only read":           {entries: []string{entry(4001, "User", false), entry(4002, "User", true)}, trusted: "heidi"},
		"a bot":                   {entries: []string{entry(4001, "Bot", true), entry(4002, "User", true)}, trusted: "heidi"},
		"nobody":                  {trusted: "grace heidi", asked: 2},
		"another form":            {body: `{"people":[]}`, trusted: "grace heidi", asked: 5},
		"ids of another form":     {body: `[{"id":"4001"}]`, trusted: "grace heidi", asked: 5},
		"refused":                 {status: http.StatusForbidden, body: `{"message":"Must have push access"}`, trusted: "grace heidi", asked: 2},
		"not there":               {status: http.StatusNotFound, body: `{"message":"Not Found"}`, trusted: "grace heidi", asked: 2},
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
			s.Inject(only("/collaborators", f))
			trusted, _, asked := judged(t, s, g)
			if trusted != c.trusted || len(asked) != 1+c.asked {
				t.Errorf("trusted %q after %d questions about one, want %q after %d", trusted, len(asked)-1, c.trusted, c.asked)
			}
		})
	}
}

// TestUnfinishedListOfPeople: beyond the page limit ralph asks about people who are not on the list.
func TestUnfinishedListOfPeople(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	for n := range 1100 {
		s.AddUser(githubtest.User{Login: fmt.Sprint("maintainer-", n), Permission: "write"})
	}
	s.AddIssue(githubtest.Issue{Title: "One"})
	for _, who := range []string{"maintainer-1", "maintainer-1099", "mallory"} {
		s.AddComment(1, who, "Hello.")
	}
	trusted, _, asked := judged(t, s, g)
	if trusted != "maintainer-1 maintainer-1099" || len(asked) != 10+2 {
		t.Errorf("trusted %q after %d requests, want both maintainers after ten pages and two questions", trusted, len(asked))
	}
}

// TestListOfPeopleFails: a temporary failure makes nobody untrusted.
func TestListOfPeopleFails(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	s.AddComment(1, "ada", "Hello.")
	s.Inject(only("/collaborators", githubtest.Fault{Status: http.StatusBadGateway}))
	if _, err := g.Get(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "list who may write to the project") {
		t.Errorf("Get = %v, want that the list failed", err)
	}
	s.Inject(nil)
	if trusted, _, _ := judged(t, s, g); trusted != "ada" {
		t.Errorf("afterwards trusted: %q, want ada", trusted)
	}
}

// TestCrowdOfReviewers: reviewers cost as few requests as commenters.
func TestCrowdOfReviewers(t *testing.T) {
	t.Parallel()
	for may, most := range map[string]int{"write": 1, "read": 1 + 50} {
		t.Run(may, func(t *testing.T) {
			t.Parallel()
			s, g := start(t)
			s.AddUser(githubtest.User{Login: githubtest.Bot, Bot: true, Permission: may})
			s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
			n := s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/7"})
			for i := range 60 {
				name := fmt.Sprint("eve-", i)
				s.AddUser(githubtest.User{Login: name, Permission: "read"})
				s.AddReview(n, githubtest.Review{Author: name, State: "CHANGES_REQUESTED", Body: "Delete it."})
			}
			s.AddReview(n, githubtest.Review{Author: "grace", State: "CHANGES_REQUESTED", Body: "Please rename."})
			found, err := g.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
			if err != nil || len(found) != 1 {
				t.Fatalf("%d follow-ups, %v; want one", len(found), err)
			}
			if text := found[0].Feedback; !strings.Contains(text, "Please rename.") || strings.Contains(text, "Delete it.") {
				t.Errorf("feedback %q, want what grace says alone", text)
			}
			asked := 0
			for _, c := range s.Calls() {
				if strings.Contains(c.Path, "/collaborators") {
					asked++
				}
			}
			if asked != most {
				t.Errorf("%d requests about people, want %d", asked, most)
			}
		})
	}
}
