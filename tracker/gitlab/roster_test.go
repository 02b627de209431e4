package gitlab

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// trustedAuthors reads the issue and returns the trusted authors, and the calls about people.
func (r *rig) trustedAuthors(t *testing.T, tr *Tracker) (trusted string, all int, asked []forgetest.Call) {
	t.Helper()
	r.server.Calls()
	i, err := tr.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range i.Comments {
		if c.Trusted {
			names = append(names, c.Author)
		}
	}
	for _, c := range r.server.Calls() {
		if strings.Contains(c.Path, "/members/") || strings.Contains(c.Path, "/users/") {
			asked = append(asked, c)
		}
	}
	return strings.Join(names, " "), len(i.Comments), asked
}

// TestListOfMembers: roles are looked up by ID, and only a complete list excludes other accounts.
func TestListOfMembers(t *testing.T) {
	t.Parallel()
	entry := func(id, level int, state string) string {
		return fmt.Sprintf(`{"id":%d,"username":"x","state":%q,"access_level":%d}`, id, state, level)
	}
	for name, c := range map[string]struct {
		status  int
		entries []string
		body    string
		trusted string
		asked   int // requests after the list; a malformed list costs three more
	}{
		"both":       {entries: []string{entry(4001, 30, "active"), entry(4002, 50, "active")}, trusted: "heidi ivan", asked: 2},
		"one":        {entries: []string{entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"a reporter": {entries: []string{entry(4001, 20, "active"), entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"blocked":    {entries: []string{entry(4001, 40, "blocked"), entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"no states":  {body: `[{"id":4001}]`, trusted: "heidi ivan", asked: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			heidi := r.server.AddUser(gitlabtest.User{ID: 4001, Username: "heidi"})
			ivan := r.server.AddUser(gitlabtest.User{ID: 4002, Username: "ivan"})
			r.project.SetMember(heidi, gitlabtest.Developer)
			r.project.SetMember(ivan, gitlabtest.Maintainer)
			r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
			r.project.Comment(heidi, 1, "Hello.", false)
			r.project.Comment(ivan, 1, "Hello.", false)
			f := gitlabtest.Fault{Status: max(c.status, http.StatusOK), Body: c.body}
			if f.Body == "" {
				f.Body = "[" + strings.Join(c.entries, ",") + "]"
			}
			r.server.Inject(f.At("/members/all"))
			trusted, _, asked := r.trustedAuthors(t, r.Tracker)
			if trusted != c.trusted || len(asked) != 1+c.asked {
				t.Errorf("trusted %q after %d questions about one, want %q after %d", trusted, len(asked)-1, c.trusted, c.asked)
			}
		})
	}
}
