package github_test

import (
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

// TestDraftsNotSupported: where there are no drafts, the title says it.
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

// TestBlankTitle: GitHub takes no request without a title, and an issue's may have nothing that can be seen.
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
			says: []string{"grace asks for changes:\nPlease rename.", "a.go:3\nhere"}, not: "rm -rf"},
		"review of an earlier commit":  {steps: steps{review(asks), move}},
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
			all, err := g.FollowUps(t.Context(), "ralph/")
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
