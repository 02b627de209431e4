package gitlab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestListKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "plain"})
	r.project.AddIssue(gitlabtest.Issue{Title: "an incident", Type: "incident"})
	r.project.AddIssue(gitlabtest.Issue{Title: "a task with a label", Type: "task", Labels: []string{"no-human"}})
	r.project.AddMerge(gitlabtest.Merge{Title: "no issue", Source: "x", Target: "main", Author: r.ada})
	if got := keys(r.list(t)); got != "1 3" {
		t.Errorf("listed %q, want 1 and 3", got)
	}
}

func TestPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for labels, want := range map[string]int{
		"": 0, "bug": 0, "p1": 2, "priority::high": 2, "Priority: Critical": 1, "P3,P0": 1, "priority::4": 4,
	} {
		iid := r.project.AddIssue(gitlabtest.Issue{Title: "x", Labels: strings.Split(labels, ",")})
		if got := r.get(t, fmt.Sprint(iid)).Priority; got != want {
			t.Errorf("priority with labels %q is %d, want %d", labels, got, want)
		}
	}
}

func TestBlockersByLink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.server.AddProject("group/other")
	elsewhere := other.AddIssue(gitlabtest.Issue{Title: "elsewhere"})
	for n := range 5 {
		r.project.AddIssue(gitlabtest.Issue{Title: fmt.Sprint(n + 1)})
	}
	r.project.Block(1, 3)
	r.project.Block(2, 3)
	r.project.Block(3, 4)
	r.project.BlockFrom(other, elsewhere, 5)
	r.project.Close(2)
	abroad := tracker.Key("group/other#1")
	for key, want := range map[string][]tracker.Blocker{
		"1": nil,
		"3": {{Key: "1", Open: true}, {Key: "2", Open: false}},
		"4": {{Key: "3", Open: true}},
		"5": {{Key: abroad, Open: true}},
	} {
		if diff := cmp.Diff(want, r.get(t, key).BlockedBy); diff != "" {
			t.Errorf("blockers of %s by Get (-want +got):\n%s", key, diff)
		}
	}
	for _, i := range r.list(t).Issues {
		want := map[string][]tracker.Blocker{"3": {{Key: "1", Open: true}}, "4": {{Key: "3", Open: true}}}[i.Key]
		if diff := cmp.Diff(want, i.BlockedBy); diff != "" {
			t.Errorf("blockers of %s by List (-want +got):\n%s", i.Key, diff)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Blocked by #12":                       "[12]",
		"x\n- blocked by: #1, #2 and #3\n#4":   "[1 2 3]",
		"blocked by #1\nBLOCKED BY #2, and #1": "[1 2]",
		"blocked by #7":                        "[]", // the issue itself
		"blocked by other/project#1":           "[]",
		"unblocked by #1":                      "[]",
		"blocked by #99999999999999":           "[]",
		"blocked by #0":                        "[]",
		"is not blocked, see #1":               "[]",
	} {
		if got := fmt.Sprint(append([]int{}, namedBlockers(text, 7)...)); got != want {
			t.Errorf("named(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestTakenByLender: if ralph uses a person's account, a request from another branch is that person's.
func TestTakenByLender(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.project.AddMerge(gitlabtest.Merge{Title: "d", Description: "Fixes #1", Source: "by-hand", Target: "main", Author: r.ralph})
	for _, i := range []tracker.Issue{r.list(t).Issues[0], r.get(t, "1")} {
		if want := "merge request !1 by ralph closes it"; i.Taken != want {
			t.Errorf("taken by %q, want %q", i.Taken, want)
		}
	}
}

// TestListWhileItChanges closes issues between the pages: with keyset pagination no other issue is missed.
func TestListWhileItChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 250 {
		r.project.AddIssue(gitlabtest.Issue{Title: fmt.Sprint(n + 1)})
	}
	pages := 0
	r.server.Inject(func(forgetest.Call) *gitlabtest.Fault {
		if pages++; pages == 2 {
			for iid := range 10 {
				r.project.Close(iid + 1)
			}
		}
		return nil
	})
	if got := len(r.list(t).Issues); got != 250 {
		t.Errorf("listed %d issues, want the 250 that were open when their page was read", got)
	}
}

// TestOutsidersCostNothing: issues without the label are not listed, whatever their text. Each spelling of the label counts.
func TestOutsidersCostNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n, label := range []string{"no-human", "No-Human", "bug"} {
		r.project.AddIssue(gitlabtest.Issue{Title: fmt.Sprint(n + 1), Author: r.ada, Labels: []string{label}})
	}
	for n := range 300 {
		r.project.AddIssue(gitlabtest.Issue{Title: "outside", Author: r.eve, Description: fmt.Sprintf("Blocked by #%d", 1000+n)})
	}
	r.server.Calls()
	if got := keys(r.list(t, "NO-HUMAN")); got != "1 2" {
		t.Errorf("listed %q, want 1 and 2", got)
	}
	if all, _ := r.calls(); all > 3 {
		t.Errorf("%d calls, want the labels and a page for each spelling", all)
	}
	r.server.Calls()
	if got := keys(r.list(t, "nowhere")); got != "" {
		t.Errorf("a label that does not exist: listed %q", got)
	}
	if all, _ := r.calls(); all > 1 {
		t.Errorf("%d calls for a label that does not exist, want one", all)
	}
}

func TestListProblems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Inject(gitlabtest.Fault{Status: 200, Body: `[{"iid":1,"project_id":7,"state":"opened","title":"good","labels":[]},{"iid":"two"},{},{"iid":4,"project_id":7,"state":"opened","labels":[{"name":1}]},
			{"iid":5,"project_id":7,"state":"opened","labels":null},null]`}.At(""))
	l := r.list(t)
	if keys(l) != "1" || len(l.Problems) != 5 {
		t.Errorf("listed %q with problems %v, want 1 and five problems", keys(l), l.Problems)
	}
}

// TestBehindProxy: GitLab is served below a path, and its links have an unreachable host.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 150 {
		r.project.AddIssue(gitlabtest.Issue{Title: fmt.Sprint(n)})
	}
	proxied := behindProxy(t, r.server.URL)
	tr := r.tracker(t, func(c *forge.Config) { c.BaseURL = proxied + "/git/lab/" })
	l, err := tr.List(t.Context(), tracker.Query{})
	if err != nil || len(l.Issues) != 150 {
		t.Errorf("listed %d issues, %v; want 150", len(l.Issues), err)
	}
}

func TestComments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bot := r.server.AddUser(gitlabtest.User{Username: "project_1_bot_af12", Bot: true})
	service := r.server.AddUser(gitlabtest.User{Username: "helper", Bot: true})
	listed := r.server.AddUser(gitlabtest.User{Username: "listed", Bot: true})
	blocked := r.server.AddUser(gitlabtest.User{Username: "left", State: "blocked"})
	for _, u := range []*gitlabtest.User{bot, service, blocked} {
		r.project.SetMember(u, gitlabtest.Maintainer)
	}
	tr := r.tracker(t, func(c *forge.Config) { c.TrustedBots = []int64{int64(listed.ID)} })
	iid := r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	who := []*gitlabtest.User{r.ada, r.grace, r.eve, bot, service, listed, blocked, r.ralph}
	for _, u := range who {
		r.project.Comment(u, iid, "by "+u.Username, false)
	}
	r.project.Comment(r.ada, iid, "changed the description", true)
	if err := tr.Report(t.Context(), "1", tracker.Report{Run: "run", Body: "Working."}); err != nil {
		t.Fatal(err)
	}
	issue, err := tr.Get(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var last time.Time
	for _, c := range issue.Comments {
		body := map[bool]string{true: "by " + c.Author}[c.Trusted]
		if c.Created.Before(last) || c.Body != body {
			t.Errorf("comment %+v is out of order or has another body", c)
		}
		last = c.Created
		got = append(got, fmt.Sprintf("%s %v", c.Author, c.Trusted))
	}
	want := []string{"ada true", "grace false", "eve false", bot.Username + " false", "helper false", "listed true", "left false", "ralph true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
}

// TestNamedBlockersAreLimited: blockers named in a text cost few requests, and none for an issue that is not worked anyway. A
// blocker that is not looked up counts as open.
func TestNamedBlockersAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var b strings.Builder
	for n := range 60 {
		r.project.Close(r.project.AddIssue(gitlabtest.Issue{Title: "done", Author: r.ada}))
		fmt.Fprintf(&b, "blocked by #%d\n", 1+n)
	}
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada, Labels: []string{"no-human"}, Description: b.String()})
	person := []string{"no-human", "needs-human"}
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada, Labels: person, Description: "blocked by #60"})
	r.server.Calls()
	l, err := r.List(t.Context(), tracker.Query{Labels: []string{"no-human"}, Unworked: []string{"needs-human"}})
	if err != nil || len(l.Issues) != 2 {
		t.Fatalf("%d issues, %v", len(l.Issues), err)
	}
	if by := l.Issues[0].BlockedBy; len(by) != 50 || by[0].Open || by[19].Open || !by[20].Open {
		t.Errorf("the first is blocked by %+v", by)
	}
	if by := l.Issues[1].BlockedBy; len(by) != 0 {
		t.Errorf("the second is blocked by %+v", by)
	}
	if all, _ := r.calls(); all > 3 { // the label's spelling, the issues, the states
		t.Errorf("%d requests: %+v", all, r.server.Calls())
	}
}

// TestConfidential: an agent's work on an issue is visible to everybody who may read the project's code.
func TestConfidential(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ confidential, public, want bool }{
		"an issue of a public project":              {public: true},
		"a confidential issue of a public project":  {confidential: true, public: true, want: true},
		"a confidential issue of a private project": {confidential: true},
	} {
		r := newRig(t)
		r.project.SetProject(func(p *gitlabtest.Project) { p.Public = tt.public })
		r.project.AddIssue(gitlabtest.Issue{Title: "A hole", Author: r.eve, Confidential: tt.confidential})
		r.project.Label(r.ada, 1, "no-human")
		for _, i := range []tracker.Issue{r.get(t, "1"), r.list(t, "no-human").Issues[0]} {
			if i.Confidential != tt.want {
				t.Errorf("%s: %v", name, i.Confidential)
			}
		}
	}
}
