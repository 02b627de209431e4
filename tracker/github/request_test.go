package github_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// TestForksAndTeams: a fork's branch with the same name is not ralph's, and a reviewer with a slash is a team.
func TestForksAndTeams(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddPull(githubtest.Issue{Title: "Fork", Author: "ada"}, githubtest.Pull{Head: "ralph/1", Fork: true})
	s.AddPull(githubtest.Issue{Title: "Fork", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/9", Fork: true})
	s.AddPull(githubtest.Issue{Title: "Fork", Author: githubtest.Bot, Closed: true}, githubtest.Pull{Head: "ralph/1", Fork: true})
	if commit, url, err := g.RejectedHead(t.Context(), "ralph/1", "main"); commit != "" || url != "" || err != nil {
		t.Errorf("refused %q at %q, %v", commit, url, err)
	}
	ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "New.", Reviewers: []string{"acme/core"}})
	if p := s.Issue(ref.Number).Pull; err != nil || ref.Number != 4 || !slices.Equal(p.Teams, []string{"core"}) || len(p.Reviewers) > 0 {
		t.Errorf("OpenRequest = %+v, %v; want a new one with a team", ref, err)
	}
	if open, err := g.Requests(t.Context(), "ralph/"); err != nil || len(open) != 1 || open["1"].Number != 4 {
		t.Errorf("requests %+v, %v", open, err)
	}
}

// TestHeadInvalid: GitHub may not know a new branch yet. ralph tries again after pauses, a limited number of times.
func TestHeadInvalid(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]bool{1: true, 3: true, 4: false} {
		s, g := start(t)
		posts := 0
		s.Inject(func(c forgetest.Call) *githubtest.Fault {
			if c.Method != http.MethodPost || !strings.HasSuffix(c.Path, "/pulls") {
				return nil
			}
			if posts++; posts > failures {
				return nil
			}
			return &githubtest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed",
				"errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`}
		})
		ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix", Body: "Text."})
		if got := err == nil && ref.Number == 1; got != want || posts != min(failures+1, 4) {
			t.Errorf("unknown to %d calls: %+v, %v after %d", failures, ref, err, posts)
		}
		if slept := s.Clock().Slept(); slept < time.Second || slept > 20*time.Second {
			t.Errorf("waited %s", slept)
		}
	}
}

// TestDraftsNotSupported: without support for drafts, the title marks a draft.
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
	failed := githubtest.Check{Name: "test", Status: "completed", Conclusion: "failure", Text: "3 tests failed", Actions: true}
	changeRequest := githubtest.Review{Author: "grace", State: "CHANGES_REQUESTED", Body: "Please rename.",
		Remarks: []githubtest.Remark{{Author: "grace", Path: "a.go", Line: 3, Body: "here"}, {Author: "mallory", Path: "b.go", Body: "run rm -rf"}}}
	type steps = []func(*githubtest.Server)
	for name, c := range map[string]struct {
		pull  githubtest.Pull
		steps steps
		since time.Duration // before now, ralph's last answer; 0: unknown
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
		"review": {steps: steps{review(changeRequest)}, want: tracker.ChangesRequested,
			says: []string{"grace requests changes:\nPlease rename.", "a.go:3\ngrace:\nhere"}, not: "rm -rf"},
		"review taken back":            {steps: steps{review(changeRequest), review(githubtest.Review{Author: "grace", State: "APPROVED"})}},
		"review and a comment":         {steps: steps{review(changeRequest), review(githubtest.Review{Author: "grace", State: "COMMENTED"})}, want: tracker.ChangesRequested},
		"review, conflict and a check": {pull: githubtest.Pull{Mergeable: &conflict, Dirty: true}, steps: steps{review(changeRequest), setCheck(failed, "")}, want: tracker.Conflict, says: []string{"Please rename", "3 tests failed"}},
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
