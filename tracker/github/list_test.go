package github_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
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

// hidingTransport omits the first entry of every page but the last, like GitHub for an account that it hides.
type hidingTransport struct{ http.RoundTripper }

func (h hidingTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	resp, err := h.RoundTripper.RoundTrip(q)
	if err != nil || !strings.Contains(resp.Header.Get("Link"), `rel="next"`) {
		return resp, err
	}
	defer resp.Body.Close()
	var page []json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return nil, err
	}
	text, err := json.Marshal(page[1:])
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return resp, err
}

// A page that is not full need not be the last.
func TestListWithHiddenEntries(t *testing.T) {
	t.Parallel()
	s := githubtest.New(t)
	const issues = 250
	for range issues {
		s.AddIssue(githubtest.Issue{Title: "one of many", Labels: []string{"no-human"}})
	}
	c := configOf(s)
	c.HTTP.Base = hidingTransport{&http.Transport{DisableKeepAlives: true}}
	if n := len(keysOf(t, open(t, c), "no-human")); n != issues-2 {
		t.Errorf("%d issues, want all but the two that are hidden", n)
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

// TestOutsidersCostNothing: issues without the label are not listed, whatever their text names, and blockers of an issue that
// somebody has taken are not read.
func TestOutsidersCostNothing(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	references := func(from int) string {
		var b strings.Builder
		for n := range 50 {
			fmt.Fprintf(&b, "blocked by other/place#%d\n", from+n)
		}
		return b.String()
	}
	s.AddIssue(githubtest.Issue{Title: "Fits", Labels: []string{"no-human"}})
	s.AddIssue(githubtest.Issue{Title: "Taken", Labels: []string{"no-human"}, Body: references(5000)})
	for n := range 300 {
		s.AddIssue(githubtest.Issue{Title: "Outside", Author: "mallory", Body: references(100 * n)})
	}
	s.AddPull(githubtest.Issue{Title: "Fix", Body: "Closes #2", Author: "ada"}, githubtest.Pull{Head: "ada/2"})
	s.Calls()
	if diff := cmp.Diff([]string{"1", "2"}, keysOf(t, g, "no-human")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if calls := s.Calls(); len(calls) > 4 { // issues, pull requests, people, identity
		t.Errorf("%d requests, want at most 4: %+v", len(calls), calls)
	}
}

// TestNamedBlockersAreLimited: one listing reads a limited number of the issues named in texts, each once. The others count as
// open.
func TestNamedBlockersAreLimited(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	for n := range 10 {
		var b strings.Builder
		for m := range 50 {
			fmt.Fprintf(&b, "blocked by other/place#%d\n", 1+50*n+m)
		}
		s.AddIssue(githubtest.Issue{Title: "Labelled", Labels: []string{"no-human"}, Body: b.String() + "blocked by other/place#1"})
	}
	s.Calls()
	l, err := g.List(t.Context(), tracker.Query{Labels: []string{"no-human"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, c := range s.Calls() {
		if strings.Contains(c.Path, "/other/place/") {
			asked[c.Path]++
		}
	}
	if len(asked) != 200 {
		t.Errorf("%d issues of others read, want 200", len(asked))
	}
	for _, i := range l.Issues {
		if len(i.BlockedBy) != 50 || !i.BlockedBy[49].Open {
			t.Errorf("issue %s has %d blockers", i.Key, len(i.BlockedBy))
		}
	}
}

// TestForeignBlockers: at most 20 of the other projects' issues named in one text are read. They are cached across listings and
// reads, and not read at all for an issue that is not worked anyway.
func TestForeignBlockers(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	var b strings.Builder
	for n := range 50 {
		fmt.Fprintf(&b, "blocked by other/place#%d\n", 1+n)
	}
	s.AddIssue(githubtest.Issue{Title: "Labelled", Labels: []string{"no-human"}, Body: b.String()})
	third := strings.ReplaceAll(b.String(), "other/", "third/")
	s.AddIssue(githubtest.Issue{Title: "A person's", Labels: []string{"no-human", "Needs-Human"}, Body: third})
	q := tracker.Query{Labels: []string{"no-human"}, Unworked: []string{"needs-human"}}
	read := func() {
		t.Helper()
		l, err := g.List(t.Context(), q)
		if err != nil || len(l.Issues) != 2 || len(l.Issues[1].BlockedBy) != 0 {
			t.Fatalf("List: %+v, %v", l, err)
		}
		i, err := g.Get(t.Context(), "1")
		if err != nil || len(i.BlockedBy) != 50 || !i.BlockedBy[49].Open || !i.BlockedBy[0].Open {
			t.Fatalf("Get: %+v, %v", i.BlockedBy, err)
		}
	}
	for step, want := range []int{20, 0, 20} {
		if step == 2 {
			s.Clock().Advance(6 * time.Minute)
		}
		s.Calls()
		read()
		read()
		asked := 0
		for _, c := range s.Calls() {
			if strings.Contains(c.Path, "/place/") {
				asked++
			}
		}
		if asked != want {
			t.Errorf("step %d: %d issues of others read, want %d", step, asked, want)
		}
	}
}

// TestUnreadableIssue: an unreadable issue is one problem and does not fail the listing.
func TestUnreadableIssue(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.Inject(githubtest.Fault{Status: http.StatusOK, Body: `[
		{"number": 7, "state": "open", "title": "Good", "user": {"id": 1, "login": "ada", "type": "User"}, "labels": [{"name": "no-human"}, {"name": "x"}]},
		{"number": "eight", "title": 5}, {"number": 9, "title": ["x"], "state": "open"}, {"number": 10, "state": "odd"}]`}.At("/issues"))
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

// TestFailures tests the consequence of each failure for a sweep.
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
		"401": {githubtest.Fault{Status: 401, Body: `{"message":"Bad credentials"}`}, stop, "401 the token is refused (Bad credentials); use a valid one"},
		"403": {githubtest.Fault{Status: 403, Body: `{"message":"Resource not accessible"}`}, stop, "403 the token may not read this (Resource not accessible)"},
		"404": {githubtest.Fault{Status: 404, Body: `{"message":"Not Found"}`}, gone, `no such issue: "1"`},
		"410": {githubtest.Fault{Status: 410, Body: `{"message":"This issue was deleted"}`}, gone, `no such issue: "1"`},
		"422": {githubtest.Fault{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing"}]}`}, skip,
			"422 the forge does not accept it (Validation Failed: Issue title missing)"},
		"429":        {githubtest.Fault{Status: 429, Header: http.Header{"Retry-After": {"86400"}}}, wait, "the forge's rate limit is used up until"},
		"500":        {githubtest.Fault{Status: 500, Body: "oops"}, wait, "500 the forge has a fault"},
		"503":        {githubtest.Fault{Status: 503}, wait, "503 the forge has a fault"},
		"timeout":    {githubtest.Fault{Hang: true}, wait, "no complete answer in time (50ms)"},
		"cut body":   {githubtest.Fault{Cut: true}, wait, "the answer is incomplete"},
		"reset":      {githubtest.Fault{Reset: true}, wait, "the answer is incomplete"},
		"malformed":  {githubtest.Fault{Status: 200, Body: `{"number": 1,,}`}, wait, "the answer is not JSON"},
		"wrong type": {githubtest.Fault{Status: 200, Body: `{"number": "one"}`}, wait, "the answer does not have the expected form (json: cannot unmarshal"},
		"451":        {githubtest.Fault{Status: 451, Body: `{"message":"blocked"}`}, stop, "451 the project is blocked (blocked)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := githubtest.New(t)
			s.AddIssue(githubtest.Issue{Title: "One"})
			cfg := configOf(s)
			if c.fault.Hang {
				cfg.HTTP.Timeout = 50 * time.Millisecond
			}
			g := open(t, cfg)
			s.Inject(func(call forgetest.Call) *githubtest.Fault {
				if !strings.Contains(call.Path, "/issues/") {
					return nil // the project exists
				}
				return &c.fault
			})
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

// TestPullRequestIsNoIssue: a pull request's number is not a key.
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
