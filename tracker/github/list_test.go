package github_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

func keysOf(t *testing.T, g *github.Tracker, labels ...string) []string {
	t.Helper()
	l, err := g.List(t.Context(), tracker.Query{Labels: labels})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	var keys []string
	for _, i := range l.Issues {
		keys = append(keys, i.Key)
	}
	return keys
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
	for _, i := range []githubtest.Issue{
		{Title: "fits", Author: "grace", Assignees: []string{"ada"}, Milestone: "v1", Labels: []string{"no-human"}},
		{Title: "another author", Assignees: []string{"ada"}, Milestone: "v1", Labels: []string{"no-human"}},
		{Title: "not assigned", Author: "grace", Milestone: "v1", Labels: []string{"no-human"}},
		{Title: "another milestone", Author: "grace", Assignees: []string{"ada"}, Milestone: "v2", Labels: []string{"no-human"}},
		{Title: "no label", Author: "grace", Assignees: []string{"ada"}, Milestone: "v1"},
		{Title: "closed", Author: "grace", Assignees: []string{"ada"}, Milestone: "v1", Labels: []string{"no-human"}, Closed: true},
	} {
		s.AddIssue(i)
	}
	s.AddPull(githubtest.Issue{Title: "a pull request", Author: "grace", Assignees: []string{"ada"}, Milestone: "v1", Labels: []string{"no-human"}},
		githubtest.Pull{Head: "topic"})
	c := configOf(s)
	c.Authors, c.Assignee, c.Milestone = []string{"Grace"}, "ada", "V1"
	if diff := cmp.Diff([]string{"1"}, keysOf(t, open(t, c), "no-human")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// TestUnchangedBacklogIsCheap: a second sweep over 1,000 issues costs one conditional request a page, and no rate.
func TestUnchangedBacklogIsCheap(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	for n := range 1000 {
		s.AddIssue(githubtest.Issue{Title: fmt.Sprint("Issue ", n), Labels: []string{"no-human"}})
	}
	c := configOf(s)
	c.CacheDir = t.TempDir()
	first := keysOf(t, open(t, c), "no-human") // by cron: each sweep is a process
	s.Calls()
	again := keysOf(t, open(t, c), "no-human")
	if len(first) != 1000 || !slices.Equal(first, again) {
		t.Errorf("listed %d, then %d", len(first), len(again))
	}
	calls := s.Calls()
	for _, call := range calls {
		if call.Status != http.StatusNotModified {
			t.Errorf("%s %s?%s: %d, want not modified", call.Method, call.Path, call.Query, call.Status)
		}
	}
	if pages := 10 + 1 /* is there an eleventh? */ + 1; /* pull requests */ len(calls) > pages {
		t.Errorf("%d requests, want at most %d", len(calls), pages)
	}
	s.Do(500, func(i *githubtest.Issue, _ time.Time) { i.Title = "Changed" })
	keysOf(t, open(t, c), "no-human")
	changed := 0
	for _, call := range s.Calls() {
		if call.Status == http.StatusOK {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d pages read anew after one issue changed", changed)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	for range 4 {
		s.AddIssue(githubtest.Issue{Title: "before"})
	}
	s.Do(2, func(i *githubtest.Issue, _ time.Time) { i.Closed = true })
	n := s.AddIssue(githubtest.Issue{
		Title: "after", BlockedBy: []int{1, 2}, SubIssues: []int{3}, Labels: []string{"x"},
		Body: "Blocked by #4, #2 and other/place#9.\nDepends on #99, #5.\n\n> blocked by #1\n",
	})
	want := []tracker.Blocker{{Key: "1", Open: true}, {Key: "2"}, {Key: "3", Open: true}, {Key: "4", Open: true},
		{Key: tracker.Key("other/place#9"), Open: true}, {Key: "99", Open: true}}
	i, err := g.Get(t.Context(), fmt.Sprint(n))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, i.BlockedBy); diff != "" {
		t.Errorf("Get (-want +got):\n%s", diff)
	}
	l, err := g.List(t.Context(), tracker.Query{Labels: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.Issues[0].BlockedBy); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

func TestTaken(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	for range 6 {
		s.AddIssue(githubtest.Issue{Title: "One"})
	}
	s.AddPull(githubtest.Issue{Title: "Mend", Body: "Fixes #1", Author: "ada"}, githubtest.Pull{Head: "ada/1"})
	s.AddPull(githubtest.Issue{Title: "Closes #2", Author: "mallory"}, githubtest.Pull{Head: "x", Fork: true})
	s.AddPull(githubtest.Issue{Title: "Closes #3", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/3"})
	s.AddPull(githubtest.Issue{Title: "Old", Body: "Closes #4", Author: "ada", Closed: true}, githubtest.Pull{Head: "y"})
	s.AddPull(githubtest.Issue{Title: "See #5 `closes #5`", Author: "ada"}, githubtest.Pull{Head: "z"})
	l, err := g.List(t.Context(), tracker.Query{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range l.Issues {
		if i.Taken != "" {
			got[i.Key] = i.Taken
		}
	}
	want := map[string]string{"1": "pull request #7 of ada closes it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

// TestTakenByOutsider: a pull request of anybody may say that it closes everything. It takes what its author is assigned
// to, and nothing from those who may direct ralph. It is the same where ralph may not list people.
func TestTakenByOutsider(t *testing.T) {
	t.Parallel()
	for _, may := range []string{"write", "read"} {
		t.Run(may, func(t *testing.T) {
			t.Parallel()
			s, g := start(t)
			s.AddUser(githubtest.User{Login: githubtest.Bot, Bot: true, Permission: may})
			s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
			s.AddIssue(githubtest.Issue{Title: "One"})
			s.AddIssue(githubtest.Issue{Title: "Two"})
			s.AddIssue(githubtest.Issue{Title: "Three", Assignees: []string{"ada", "mallory"}})
			s.AddIssue(githubtest.Issue{Title: "Four", Assignees: []string{"ada"}})
			s.AddPull(githubtest.Issue{Title: "Mine", Body: "Closes #1, closes #2, closes #3, closes #4", Author: "mallory"}, githubtest.Pull{Head: "main", Fork: true})
			s.AddPull(githubtest.Issue{Title: "Mend", Body: "Closes #2", Author: "grace"}, githubtest.Pull{Head: "grace", Fork: true})
			want := map[string]string{"2": "pull request #6 of grace closes it", "3": "pull request #5 of mallory closes it"}
			l, err := g.List(t.Context(), tracker.Query{})
			if err != nil || len(l.Issues) != 4 {
				t.Fatalf("listed %d issues, %v; want 4", len(l.Issues), err)
			}
			for _, i := range l.Issues {
				one, err := g.Get(t.Context(), i.Key)
				if err != nil {
					t.Fatal(err)
				}
				if i.Taken != want[i.Key] || one.Taken != want[i.Key] {
					t.Errorf("%s is taken by %q in the list, %q by itself; want %q", i.Key, i.Taken, one.Taken, want[i.Key])
				}
			}
			asked := 0
			for _, c := range s.Calls() {
				if strings.Contains(c.Path, "/collaborators") {
					asked++
				}
			}
			if most := map[string]int{"write": 1, "read": 1 + 2}[may]; asked != most {
				t.Errorf("%d requests about people, want %d", asked, most)
			}
		})
	}
}

// TestUnreadableIssue: an issue of another form is a problem of its own, not of the listing.
func TestUnreadableIssue(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.Inject(only("/issues", githubtest.Fault{Status: http.StatusOK, Body: `[
		{"number": 7, "state": "open", "title": "Good", "user": {"id": 1, "login": "ada", "type": "User"}, "labels": ["no-human", {"name": "x"}]},
		{"number": "eight", "title": 5}, {"number": 9, "title": ["x"], "state": "open"}, {"number": 10, "state": "odd"}]`}))
	l, err := g.List(t.Context(), tracker.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Issues) != 1 || l.Issues[0].Key != "7" || !slices.Equal(l.Issues[0].Labels, []string{"no-human", "x"}) {
		t.Errorf("issues: %+v", l.Issues)
	}
	var where []string
	for _, p := range l.Problems {
		where = append(where, p.Where)
	}
	if diff := cmp.Diff([]string{"acme/widgets, issue 2 of the listing", "acme/widgets#9", "acme/widgets#10"}, where); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestFailures is the table of what each failure means to a sweep.
func TestFailures(t *testing.T) {
	t.Parallel()
	type kind string
	const (
		wait kind = "wait or retry"
		skip kind = "skip the issue"
		stop kind = "stop the sweep"
		gone kind = "no such issue"
	)
	for name, c := range map[string]struct {
		fault githubtest.Fault
		want  kind
		says  string
	}{
		"401": {githubtest.Fault{Status: 401, Body: `{"message":"Bad credentials"}`}, stop, "401 the token is refused (Bad credentials); give a valid one"},
		"403": {githubtest.Fault{Status: 403, Body: `{"message":"Resource not accessible"}`}, stop, "403 the token may not read this (Resource not accessible)"},
		"404": {githubtest.Fault{Status: 404, Body: `{"message":"Not Found"}`}, gone, `no such issue: "1"`},
		"410": {githubtest.Fault{Status: 410, Body: `{"message":"This issue was deleted"}`}, gone, `no such issue: "1"`},
		"422": {githubtest.Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing"}]}`}, skip,
			"422 the forge does not take it (Validation Failed: Issue title missing)"},
		"429":        {githubtest.Fault{Status: 429, Header: http.Header{"Retry-After": {"86400"}}}, wait, "the forge's rate limit is used up until"},
		"500":        {githubtest.Fault{Status: 500, Body: "oops"}, wait, "500 the forge has a fault"},
		"503":        {githubtest.Fault{Status: 503}, wait, "503 the forge has a fault"},
		"timeout":    {githubtest.Fault{Hang: true}, wait, "no complete answer in time (50ms)"},
		"cut body":   {githubtest.Fault{Cut: true}, wait, "the answer was cut"},
		"reset":      {githubtest.Fault{Reset: true}, wait, "the answer was cut"},
		"malformed":  {githubtest.Fault{Status: 200, Body: `{"number": 1,,}`}, wait, "the answer is not JSON"},
		"wrong type": {githubtest.Fault{Status: 200, Body: `{"number": "one"}`}, wait, "the answer has another form than expected (json: cannot unmarshal"},
		"451":        {githubtest.Fault{Status: 451, Body: `{"message":"blocked"}`}, stop, "451 the project is blocked (blocked)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			s.AddIssue(githubtest.Issue{Title: "One"})
			cfg := configOf(s)
			if c.fault.Hang {
				cfg.Timeout = 50 * time.Millisecond
			}
			g := open(t, cfg)
			s.Inject(func(int, *http.Request) *githubtest.Fault { return &c.fault })
			_, err := g.Get(t.Context(), "1")
			got := skip
			var unavailable *tracker.UnavailableError
			var refused *tracker.RefusedError
			switch {
			case errors.As(err, &unavailable):
				got = wait
			case errors.As(err, &refused):
				got = stop
			case errors.Is(err, tracker.ErrNotFound):
				got = gone
			}
			if got != c.want || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\n is %q, want %q and %q", err, got, c.want, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), githubtest.Token)) {
				t.Errorf("error has more than one line, or the token: %q", err)
			}
		})
	}
}

// TestTransferredIssue: an issue that lives in another project now is none of this backlog.
func TestTransferredIssue(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	s.Inject(only("/issues/1", githubtest.Fault{Status: http.StatusOK,
		Body: `{"number": 1, "state": "open", "labels": [], "repository_url": "https://api.github.com/repos/other/place"}`}))
	if _, err := g.Get(t.Context(), "1"); !errors.Is(err, tracker.ErrNotFound) || !strings.Contains(err.Error(), "has moved to other/place#1") {
		t.Errorf("Get = %v", err)
	}
}

// TestPullRequestIsNoIssue: its number is no key.
func TestPullRequestIsNoIssue(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddPull(githubtest.Issue{Title: "Pull", Author: "ada"}, githubtest.Pull{Head: "x"})
	if _, err := g.Get(t.Context(), "1"); !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("Get = %v", err)
	}
	if err := g.Change(t.Context(), "1", tracker.Change{Close: true}); !errors.Is(err, tracker.ErrNotFound) || s.Issue(1).Closed {
		t.Errorf("Change = %v", err)
	}
}

// TestTokenIsNotLogged: not at the most talkative level, whatever happens.
func TestTokenIsNotLogged(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	cfg := configOf(s)
	var log strings.Builder
	cfg.Log = zerolog.New(&log).Level(zerolog.TraceLevel)
	g := open(t, cfg)
	faults := slices.Collect(maps.Values(githubtest.Faults()))
	s.Inject(func(n int, _ *http.Request) *githubtest.Fault { return &faults[n%len(faults)] })
	for range 20 {
		if _, err := g.Get(t.Context(), "1"); err != nil && strings.Contains(err.Error(), githubtest.Token) {
			t.Errorf("the token is in the error %v", err)
		}
	}
	if log.Len() == 0 || strings.Contains(log.String(), githubtest.Token) {
		t.Errorf("log: %s", log.String())
	}
}
