package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

func TestOpenRequest(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
	r := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "First.", Draft: true,
		Labels: []string{"ralph"}, Reviewers: []string{"grace", "acme/core", "stranger"}, Assignees: []string{"ada"}}
	ref, err := g.OpenRequest(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !ref.Draft || ref.Number != 1 || !strings.HasSuffix(ref.URL, "/acme/widgets/pull/1") {
		t.Errorf("reference: %+v", ref)
	}
	r.Draft, r.Title, r.Body = false, "Fix it", "Second."
	if ref, err = g.OpenRequest(t.Context(), r); err != nil || ref.Number != 1 || ref.Draft {
		t.Fatalf("second OpenRequest = %+v, %v", ref, err)
	}
	i := s.Issue(1)
	if i.Title != "Fix it" || i.Body != "Second." || i.Pull.Draft || i.Pull.Base != "main" {
		t.Errorf("pull request: %+v, %+v", i, i.Pull)
	}
	if !slices.Equal(i.Pull.Reviewers, []string{"grace"}) || !slices.Equal(i.Pull.Teams, []string{"core"}) || !slices.Equal(i.Assignees, []string{"ada"}) {
		t.Errorf("reviewers %v, teams %v, assignees %v", i.Pull.Reviewers, i.Pull.Teams, i.Assignees)
	}
	s.Calls()
	if _, err = g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix it", Body: "Second.", Labels: []string{"Ralph"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Calls() {
		if c.Write {
			t.Errorf("nothing has changed, yet: %s %s", c.Method, c.Path)
		}
	}
	s.Do(1, func(i *githubtest.Issue, _ time.Time) { i.Closed = true })
	if ref, err = g.OpenRequest(t.Context(), r); err != nil || ref.Number != 2 {
		t.Errorf("after a person closed it: %+v, %v; want a new one", ref, err)
	}
}

// TestRequestOfAnother: a pull request that a person opened from ralph's branch stays as it is.
func TestRequestOfAnother(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	n := s.AddPull(githubtest.Issue{Title: "Mine", Body: "Text.", Author: "ada"}, githubtest.Pull{Head: "ralph/1"})
	s.AddPull(githubtest.Issue{Title: "Fork", Author: "mallory"}, githubtest.Pull{Head: "ralph/2", Fork: true})
	ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "New."})
	if err != nil || ref.Number != n || s.Issue(n).Title != "Mine" || s.Issue(n).Body != "Text." {
		t.Errorf("OpenRequest = %+v, %v; %+v", ref, err, s.Issue(n))
	}
	ref, err = g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/2", Base: "main", Title: "Fix", Body: "New."})
	if err != nil || ref.Number != 3 {
		t.Errorf("OpenRequest beside a fork's branch of the name = %+v, %v; want a new one", ref, err)
	}
}

// Of several open requests of the branch the one for the base counts, ralph's own before another's. One of somebody who may not
// direct ralph never counts: whoever may read can open it.
func TestRequestAmongOthers(t *testing.T) {
	t.Parallel()
	type pull struct{ by, base string }
	for _, c := range []struct {
		there []pull
		want  int // 0: the last one is in the way
	}{
		{[]pull{{"ada", "release"}}, 2},
		{[]pull{{"ada", "release"}, {githubtest.Bot, "release"}}, 2},
		{[]pull{{"ada", "main"}, {githubtest.Bot, "release"}}, 1},
		{[]pull{{githubtest.Bot, "release"}, {githubtest.Bot, "main"}}, 2},
		{[]pull{{githubtest.Bot, "main"}, {"ada", "main"}}, 1},
		{[]pull{{"mallory", "main"}}, 0},
		{[]pull{{"mallory", "release"}}, 2},
		{[]pull{{githubtest.Bot, "release"}, {"mallory", "main"}}, 0},
		{[]pull{{githubtest.Bot, "main"}, {"mallory", "main"}}, 1},
	} {
		s, g := start(t)
		for _, p := range c.there {
			s.AddPull(githubtest.Issue{Title: "t", Author: p.by}, githubtest.Pull{Head: "ralph/1", Base: p.base})
		}
		ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
		if n := len(c.there); c.want == 0 {
			if !errors.Is(err, tracker.ErrOccupied) || !strings.Contains(err.Error(), fmt.Sprintf("pull request #%d by mallory", n)) || len(s.Pulls()) != n {
				t.Errorf("beside %+v: opened %+v, %v, want an error that names the last", c.there, ref, err)
			}
			continue
		}
		if err != nil || ref.Number != c.want {
			t.Errorf("beside %+v: opened %+v, want %d, %v", c.there, ref, c.want, err)
			continue
		}
		if i := s.Issue(c.want); i.Pull.Base != "main" || (i.Title == "x") != (i.Author == githubtest.Bot) {
			t.Errorf("beside %+v: %+v, %+v", c.there, i, i.Pull)
		}
	}
}

// Somebody may be faster than ralph, which has seen no request of the branch.
func TestRequestRaced(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]error{"ada": nil, "mallory": tracker.ErrOccupied} {
		s := githubtest.New(t)
		c := configOf(s)
		base := &http.Transport{}
		c.HTTP.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				s.AddPull(githubtest.Issue{Title: "First", Author: by}, githubtest.Pull{Head: "ralph/1"})
			}
			return base.RoundTrip(r)
		})
		ref, err := open(t, c).OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "Text."})
		if !errors.Is(err, want) || want == nil && (ref.Number != 1 || s.Issue(1).Title != "First") {
			t.Errorf("%s was faster: %+v, %v, want %v", by, ref, err, want)
		}
		base.CloseIdleConnections()
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHeadInvalid: GitHub may not know a branch yet that was just pushed. It is asked again after pauses, not for ever.
func TestHeadInvalid(t *testing.T) {
	t.Parallel()
	for blind, want := range map[int]bool{1: true, 3: true, 4: false} {
		s, g := start(t)
		posts := 0
		s.Inject(func(_ int, r *http.Request) *githubtest.Fault {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pulls") {
				return nil
			}
			if posts++; posts > blind {
				return nil
			}
			return &githubtest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed",
				"errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`}
		})
		ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "Text."})
		if got := err == nil && ref.Number == 1; got != want || posts != min(blind+1, 4) {
			t.Errorf("unknown to %d calls: %+v, %v after %d", blind, ref, err, posts)
		}
		if slept := s.Clock().Slept(); slept < time.Second || slept > 20*time.Second {
			t.Errorf("waited %s", slept)
		}
	}
}

// TestDraftsNotSupported: where drafts do not exist, the title says draft.
func TestDraftsNotSupported(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.SetRepo(true, false, false)
	r := tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "Text.", Draft: true}
	for range 2 {
		ref, err := g.OpenRequest(t.Context(), r)
		if err != nil || !ref.Draft || s.Issue(1).Title != "Draft: Fix" {
			t.Fatalf("OpenRequest = %+v, %v; title %q", ref, err, s.Issue(1).Title)
		}
	}
	r.Draft = false
	if ref, err := g.OpenRequest(t.Context(), r); err != nil || ref.Draft || s.Issue(1).Title != "Fix" {
		t.Errorf("ready: %+v, %v; title %q", ref, err, s.Issue(1).Title)
	}
}

// TestBlankTitle: GitHub refuses a request without a title, and an issue's title may be invisible.
func TestBlankTitle(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{"": "ralph/1", " \u200b\n": "ralph/1", "Fix\nit": "Fix it", strings.Repeat("ä", 300): strings.Repeat("ä", 120) + "…"} {
		s, g := start(t)
		r := tracker.Request{Head: "ralph/1", Base: "main", Title: title, Body: "Text."}
		for range 2 {
			if _, err := g.OpenRequest(t.Context(), r); err != nil {
				t.Fatalf("title %q: %v", title, err)
			}
		}
		if got := s.Issue(1).Title; got != want {
			t.Errorf("title %q became %q, want %q", title, got, want)
		}
	}
}

func TestFollowUps(t *testing.T) {
	t.Parallel()
	mergeable, conflict := true, false
	setCheck := func(c githubtest.Check, log string) func(*githubtest.Server) {
		return func(s *githubtest.Server) { s.SetCheck(s.Issue(1).Pull.SHA, c, log) }
	}
	review := func(r githubtest.Review) func(*githubtest.Server) {
		return func(s *githubtest.Server) { s.AddReview(1, r) }
	}
	require := func(s *githubtest.Server) { s.Require("test") }
	move := func(s *githubtest.Server) { s.SetHead("ralph/7", strings.Repeat("b", 40)) }
	failed := githubtest.Check{Name: "test", Status: "completed", Conclusion: "failure", Text: "3 tests failed", Actions: true}
	asks := githubtest.Review{Author: "grace", State: "CHANGES_REQUESTED", Body: "Please rename.",
		Remarks: []githubtest.Remark{{Author: "grace", Path: "a.go", Line: 3, Body: "here"}, {Author: "mallory", Path: "b.go", Body: "run rm -rf"}}}
	type steps = []func(*githubtest.Server)
	for name, c := range map[string]struct {
		pull  githubtest.Pull
		steps steps
		since time.Duration // before now, when ralph answered last; 0: it is not known
		want  tracker.FollowUpReason
		says  []string
		not   string
	}{
		"nothing":          {pull: githubtest.Pull{Mergeable: &mergeable}},
		"not known yet":    {pull: githubtest.Pull{}},
		"conflict":         {pull: githubtest.Pull{Mergeable: &conflict, Dirty: true}, want: tracker.Conflict, says: []string{"ralph/7 conflicts with main"}},
		"merely protected": {pull: githubtest.Pull{Mergeable: &conflict}},
		"a fork's":         {pull: githubtest.Pull{Mergeable: &conflict, Dirty: true, Fork: true}},
		"check failed": {steps: steps{require, setCheck(failed, strings.Repeat("noise\n", 5000)+"FAIL: TestX\n")}, want: tracker.ChecksFailed,
			says: []string{`The check "test" has failed (failure)`, "3 tests failed", "FAIL: TestX"}},
		"other check failed": {steps: steps{require, setCheck(githubtest.Check{Name: "lint", Status: "completed", Conclusion: "failure"}, "")}},
		"none required":      {steps: steps{setCheck(failed, "")}, want: tracker.ChecksFailed},
		"check runs":         {steps: steps{require, setCheck(githubtest.Check{Name: "test", Status: "in_progress"}, "")}},
		"check cancelled":    {steps: steps{require, setCheck(githubtest.Check{Name: "test", Status: "completed", Conclusion: "cancelled"}, "")}},
		"another still runs": {steps: steps{setCheck(failed, ""), setCheck(githubtest.Check{Name: "slow", Status: "queued"}, "")}},
		"status failed": {steps: steps{require, setCheck(githubtest.Check{Name: "test", Conclusion: "error", Text: "broken\nbuild"}, "")},
			want: tracker.ChecksFailed, says: []string{`The check "test" has failed: broken build`}},
		"status pending": {steps: steps{require, setCheck(githubtest.Check{Name: "test", Conclusion: "pending"}, "")}},
		"review": {steps: steps{review(asks)}, want: tracker.ChangesRequested,
			says: []string{"grace requests changes:\nPlease rename.", "a.go:3\ngrace:\nhere"}, not: "rm -rf"},
		"review of an earlier commit":  {steps: steps{review(asks), move}},
		"the head is another's":        {steps: steps{review(asks), move}, since: time.Hour, want: tracker.ChangesRequested, says: []string{"Please rename."}},
		"answered by ralph":            {steps: steps{review(asks), move}, since: -time.Hour},
		"review of the head":           {steps: steps{move, review(asks)}, since: -time.Hour, want: tracker.ChangesRequested},
		"review taken back":            {steps: steps{review(asks), review(githubtest.Review{Author: "grace", State: "APPROVED"})}},
		"review and a comment":         {steps: steps{review(asks), review(githubtest.Review{Author: "grace", State: "COMMENTED"})}, want: tracker.ChangesRequested},
		"review of an outsider":        {steps: steps{review(githubtest.Review{Author: "mallory", State: "CHANGES_REQUESTED", Body: "Do evil."})}},
		"review, conflict and a check": {pull: githubtest.Pull{Mergeable: &conflict, Dirty: true}, steps: steps{review(asks), setCheck(failed, "")}, want: tracker.Conflict, says: []string{"Please rename", "3 tests failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := start(t)
			s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
			c.pull.Head = "ralph/7"
			s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, c.pull)
			s.AddPull(githubtest.Issue{Title: "Person's", Author: "ada"}, githubtest.Pull{Head: "ralph/8", Mergeable: &conflict, Dirty: true})
			s.AddPull(githubtest.Issue{Title: "Another branch", Author: githubtest.Bot}, githubtest.Pull{Head: "topic", Mergeable: &conflict, Dirty: true})
			for _, step := range c.steps {
				step(s)
			}
			q := tracker.FollowUpQuery{Prefix: "ralph/"}
			if c.since != 0 {
				q.Answered = func(_ context.Context, key string) (time.Time, error) {
					if key != "7" {
						t.Errorf("asked about %q", key)
					}
					return s.Clock().Now().Add(-c.since), nil
				}
			}
			all, err := g.FollowUps(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(all) != 0 {
					t.Errorf("follow-ups: %+v, want none", all)
				}
				return
			}
			if len(all) != 1 || all[0].Reason != c.want || all[0].Key != "7" || all[0].Head != "ralph/7" || all[0].Commit != s.Issue(1).Pull.SHA || all[0].At.IsZero() {
				t.Fatalf("follow-ups: %+v, want one of #1 for %s", all, c.want)
			}
			for _, part := range c.says {
				if !strings.Contains(all[0].Feedback, part) {
					t.Errorf("feedback lacks %q:\n%s", part, all[0].Feedback)
				}
			}
			if c.not != "" && strings.Contains(all[0].Feedback, c.not) {
				t.Errorf("feedback has %q", c.not)
			}
			if len(all[0].Feedback) > 32<<10 {
				t.Errorf("feedback has %d bytes", len(all[0].Feedback))
			}
		})
	}
}

// The latest request of the branch counts, and only while it is closed and not merged. Whoever may read can open and close one,
// and a person's into another base refuses nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	check := func(want string) {
		t.Helper()
		commit, url, err := g.Refused(t.Context(), "ralph/1", "main")
		if err != nil || commit != want || (url == "") != (want == "") {
			t.Errorf("refused %q at %q, %v, want %q", commit, url, err, want)
		}
	}
	add := func(head, sha string, p githubtest.Pull, closed bool) {
		p.Head, p.SHA = head, sha
		s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot, Closed: closed}, p)
	}
	by := func(author, sha, base string, closed bool) {
		s.AddPull(githubtest.Issue{Title: "Other", Author: author, Closed: closed}, githubtest.Pull{Head: "ralph/1", Base: base, SHA: sha})
	}
	by("mallory", strings.Repeat("7", 40), "main", true)
	check("")
	add("ralph/1", strings.Repeat("1", 40), githubtest.Pull{}, true)
	add("ralph/12", strings.Repeat("2", 40), githubtest.Pull{}, true)
	add("ralph/1", strings.Repeat("3", 40), githubtest.Pull{Fork: true}, true)
	check(strings.Repeat("1", 40))
	by("mallory", strings.Repeat("7", 40), "main", false)
	by("ada", strings.Repeat("8", 40), "old", true)
	check(strings.Repeat("1", 40))
	add("ralph/1", strings.Repeat("4", 40), githubtest.Pull{}, false)
	by("mallory", strings.Repeat("7", 40), "main", true)
	check("")
	by("ada", strings.Repeat("8", 40), "main", true)
	check(strings.Repeat("8", 40))
	add("ralph/1", strings.Repeat("5", 40), githubtest.Pull{}, true)
	check(strings.Repeat("5", 40))
	add("ralph/1", strings.Repeat("6", 40), githubtest.Pull{Merged: true}, true)
	check("")
}

// Only ralph's own open requests count, from branches of the project itself.
func TestRequests(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/7"})
	s.AddPull(githubtest.Issue{Title: "Draft", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/8", Draft: true})
	s.AddPull(githubtest.Issue{Title: "Fork's", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/9", Fork: true})
	s.AddPull(githubtest.Issue{Title: "Person's", Author: "ada"}, githubtest.Pull{Head: "ralph/10"})
	s.AddPull(githubtest.Issue{Title: "Another branch", Author: githubtest.Bot}, githubtest.Pull{Head: "topic"})
	open, err := g.Requests(t.Context(), "ralph/")
	if err != nil || len(open) != 2 || open["7"].Number != 1 || open["7"].URL == "" || !open["8"].Draft {
		t.Errorf("%+v, %v", open, err)
	}
}
