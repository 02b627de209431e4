package gitlab

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// crowd has 150 accounts say 250 things on one issue, ada the first and ralph's own account the last.
func crowd(t *testing.T, edits ...func(*forge.Config)) *rig {
	t.Helper()
	r := newRig(t, edits...)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	var eves []*gitlabtest.User
	for n := range 150 {
		eves = append(eves, r.server.AddUser(gitlabtest.User{Username: fmt.Sprint("eve-", n)}))
	}
	r.project.Comment(r.ada, 1, "I am ada.", false)
	for n := range 248 {
		r.project.Comment(eves[n%len(eves)], 1, "I am somebody.", false)
	}
	r.project.Comment(r.ralph, 1, "I am who has lent the account.", false)
	return r
}

// judged reads the issue and returns the trusted authors, and the calls about people.
func (r *rig) judged(t *testing.T, tr *Tracker) (trusted string, all int, asked []gitlabtest.Call) {
	t.Helper()
	r.server.Forget()
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

// TestCrowdIsCheap: the members are listed once, however many people comment, and ralph asks once whether each one with
// write permission is a bot; another process makes conditional requests.
func TestCrowdIsCheap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cached := func(c *forge.Config) { c.StateDir = dir }
	r := crowd(t, cached)
	for _, want := range []int{http.StatusOK, http.StatusNotModified} {
		tr := r.tracker(t, cached)
		for n, calls := range []int{1 + 2, 0} { // the second look is in the same process
			trusted, all, asked := r.judged(t, tr)
			if trusted != "ada ralph" || all != 250 {
				t.Errorf("trusted: %q of %d comments", trusted, all)
			}
			if len(asked) != calls || n == 0 && asked[0].Status != want {
				t.Errorf("look %d: %d calls about people, want %d with status %d", n+1, len(asked), calls, want)
			}
		}
	}
}

// TestCrowdBeyondTheCap: where ralph may not see the list, it asks about the last fifty accounts. Earlier ones are not
// trusted, but their comments are there.
func TestCrowdBeyondTheCap(t *testing.T) {
	t.Parallel()
	r := crowd(t)
	r.project.HideMembers = true
	trusted, all, asked := r.judged(t, r.Tracker)
	if trusted != "ralph" || all != 250 {
		t.Errorf("trusted: %q of %d comments, want ralph of 250", trusted, all)
	}
	if len(asked) != 1+50+1 || asked[0].Status != http.StatusForbidden {
		t.Errorf("%d calls about people, want the refused list, 50, and whether ralph is a bot", len(asked))
	}
}

// TestListOfMembers: roles are read by id, and only a complete list excludes the others.
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
		asked   int // after the list; for one of another form it is asked three times more
	}{
		"both":         {entries: []string{entry(4001, 30, "active"), entry(4002, 50, "active")}, trusted: "heidi ivan", asked: 2},
		"one":          {entries: []string{entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"a reporter":   {entries: []string{entry(4001, 20, "active"), entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"blocked":      {entries: []string{entry(4001, 40, "blocked"), entry(4002, 30, "active")}, trusted: "ivan", asked: 1},
		"nobody":       {trusted: "heidi ivan", asked: 4},
		"another form": {body: `{"people":[]}`, trusted: "heidi ivan", asked: 7},
		"no states":    {body: `[{"id":4001}]`, trusted: "heidi ivan", asked: 7},
		"refused":      {status: http.StatusForbidden, body: `{"message":"403 Forbidden"}`, trusted: "heidi ivan", asked: 4},
		"not there":    {status: http.StatusNotFound, body: `{"message":"404 Not Found"}`, trusted: "heidi ivan", asked: 4},
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
			r.server.Inject(func(call gitlabtest.Call) *gitlabtest.Fault {
				if strings.HasSuffix(call.Path, "/members/all") {
					return &f
				}
				return nil
			})
			trusted, _, asked := r.judged(t, r.Tracker)
			if trusted != c.trusted || len(asked) != 1+c.asked {
				t.Errorf("trusted %q after %d questions about one, want %q after %d", trusted, len(asked)-1, c.trusted, c.asked)
			}
		})
	}
}

// TestUnfinishedListOfMembers: beyond the page limit ralph asks about people who are not on the list.
func TestUnfinishedListOfMembers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var many []*gitlabtest.User
	for n := range 1100 {
		many = append(many, r.server.AddUser(gitlabtest.User{Username: fmt.Sprint("member-", n)}))
		r.project.SetMember(many[n], gitlabtest.Developer)
	}
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	for _, u := range []*gitlabtest.User{many[1], many[1099], r.eve} {
		r.project.Comment(u, 1, "Hello.", false)
	}
	trusted, _, asked := r.judged(t, r.Tracker)
	if trusted != "member-1 member-1099" || len(asked) != 10+1+2+1 {
		t.Errorf("trusted %q after %d calls, want both members after ten pages, whether one is a bot, both for the other, one for eve", trusted, len(asked))
	}
}

// TestListOfMembersFails: a temporary failure makes nobody untrusted.
func TestListOfMembersFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	r.project.Comment(r.ada, 1, "Hello.", false)
	r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
		if strings.HasSuffix(c.Path, "/members/all") {
			return &gitlabtest.Fault{Status: http.StatusBadGateway}
		}
		return nil
	})
	if _, err := r.Get(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "list who may write to the project") {
		t.Errorf("Get = %v, want that the list failed", err)
	}
	r.server.Inject(nil)
	if trusted, _, _ := r.judged(t, r.Tracker); trusted != "ada" {
		t.Errorf("afterwards trusted: %q, want ada", trusted)
	}
}

// TestCrowdOfReviewers: reviewers cost as few calls as commenters.
func TestCrowdOfReviewers(t *testing.T) {
	t.Parallel()
	for hidden, most := range map[bool]int{false: 1 + 1, true: 1 + 50 + 1} {
		t.Run(fmt.Sprint(hidden), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.project.HideMembers = hidden
			iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/42", Target: "main", Author: r.ralph})
			for n := range 60 {
				eve := r.server.AddUser(gitlabtest.User{Username: fmt.Sprint("eve-", n)})
				r.project.Discuss(iid, gitlabtest.Thread{By: eve, Body: "Delete it.", Resolvable: true})
			}
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "Please rename.", Resolvable: true})
			r.server.Forget()
			found, err := r.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
			if err != nil || len(found) != 1 {
				t.Fatalf("%d follow-ups, %v; want one", len(found), err)
			}
			if text := found[0].Feedback; !strings.Contains(text, "Please rename.") || strings.Contains(text, "Delete it.") {
				t.Errorf("feedback %q, want what ada says alone", text)
			}
			asked := 0
			for _, c := range r.server.Calls() {
				if strings.Contains(c.Path, "/members/") || strings.Contains(c.Path, "/users/") {
					asked++
				}
			}
			if asked != most {
				t.Errorf("%d calls about people, want %d", asked, most)
			}
		})
	}
}
