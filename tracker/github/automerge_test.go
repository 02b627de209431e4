package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// GitHub merges a request with a method that the repository allows; if it cannot, one line says what to turn on.
func TestMergeLater(t *testing.T) {
	t.Parallel()
	on := githubtest.MergeRules{Allowed: true, Required: true}
	thread := func(resolved bool) githubtest.Review {
		return githubtest.Review{Author: "grace", State: "COMMENTED", Remarks: []githubtest.Remark{{Author: "grace", Path: "a", Line: 1, Body: "x", Resolved: resolved}}}
	}
	for name, c := range map[string]struct {
		rules  githubtest.MergeRules
		change func(*githubtest.Server)
		auto   string // the method that was set; "queued": in the queue
		says   string // reason of a refusal
	}{
		"allowed":      {rules: on, auto: "MERGE"},
		"squash only":  {rules: githubtest.MergeRules{Allowed: true, Required: true, Method: "SQUASH"}, auto: "SQUASH"},
		"rebase only":  {rules: githubtest.MergeRules{Allowed: true, Required: true, Method: "REBASE"}, auto: "REBASE"},
		"a queue":      {rules: githubtest.MergeRules{Allowed: true, Required: true, Queue: true}, auto: "QUEUE"},
		"a clean one":  {rules: githubtest.MergeRules{Allowed: true, Required: true, Queue: true, Clean: true}, auto: "queued"},
		"off":          {says: `turn on "Allow auto-merge" in the repository's settings`},
		"no checks":    {rules: githubtest.MergeRules{Allowed: true}, says: "Protected branch rules not configured"},
		"all passed":   {rules: githubtest.MergeRules{Allowed: true, Required: true, Clean: true}, says: "make a check required on main"},
		"a review":     {rules: githubtest.MergeRules{Allowed: true, Required: true, Decision: "CHANGES_REQUESTED"}, says: "requests changes"},
		"open thread":  {rules: on, change: func(s *githubtest.Server) { s.AddReview(1, thread(false)) }, says: "not resolved"},
		"old thread":   {rules: on, change: func(s *githubtest.Server) { s.AddReview(1, thread(true)) }, auto: "MERGE"},
		"a draft":      {rules: on, change: func(s *githubtest.Server) { s.Do(1, func(i *githubtest.Issue, _ time.Time) { i.Pull.Draft = true }) }, says: "a draft"},
		"another head": {rules: on, change: func(s *githubtest.Server) { s.SetHead("ralph/7", strings.Repeat("b", 40)) }, says: "not the commit that was checked"},
		"a person's":   {rules: on, change: func(s *githubtest.Server) { s.Do(1, func(i *githubtest.Issue, _ time.Time) { i.Author = "ada" }) }, says: "no open request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := start(t)
			s.AddUser(githubtest.User{Login: "grace", Permission: "write"})
			s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/7", Base: "main"})
			commit := s.Issue(1).Pull.SHA
			s.SetMerging(c.rules)
			if c.change != nil {
				c.change(s)
			}
			for range 2 {
				why, err := g.MergeLater(t.Context(), "ralph/7", commit)
				if err != nil || (why == "") != (c.says == "") || !strings.Contains(why, c.says) || strings.Contains(why, "\n") {
					t.Fatalf("%q, %v", why, err)
				}
			}
			auto := s.Issue(1).Pull.AutoMerge
			if s.Issue(1).Pull.Queued {
				auto = "queued"
			}
			if auto != c.auto {
				t.Errorf("it is %q, want %q", auto, c.auto)
			}
			if err := g.KeepOpen(t.Context(), "ralph/7"); err != nil {
				t.Fatal(err)
			}
			if p := s.Issue(1).Pull; p.AutoMerge != "" || p.Queued {
				t.Errorf("not taken back: %+v", p)
			}
		})
	}
}

// Auto-merge is cancelled once somebody requests changes.
func TestMergeLaterIsTakenBack(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddPull(githubtest.Issue{Title: "Fix", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/7", Base: "main"})
	commit := s.Issue(1).Pull.SHA
	rules := githubtest.MergeRules{Allowed: true, Required: true}
	s.SetMerging(rules)
	if why, err := g.MergeLater(t.Context(), "ralph/7", commit); why != "" || err != nil {
		t.Fatalf("%q, %v", why, err)
	}
	rules.Decision = "CHANGES_REQUESTED"
	s.SetMerging(rules)
	if why, err := g.MergeLater(t.Context(), "ralph/7", commit); why == "" || err != nil || s.Issue(1).Pull.AutoMerge != "" {
		t.Errorf("%q, %v, %+v", why, err, s.Issue(1).Pull)
	}
	if err := g.KeepOpen(t.Context(), "ralph/8"); err != nil {
		t.Errorf("of none: %v", err)
	}
}
