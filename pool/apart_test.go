package pool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// Issues that share a file are worked one after the other, beside issues that do not. A plan shows that.
func TestSameFilesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.issue("a", "priority: 1", "touches: [README]")
	g.issue("b", "priority: 2", "---\nSee `README`.\n\n---")
	g.issue("c", "priority: 3")
	g.issue("d", "priority: 4", "touches: none", "---\nSee `README`.\n\n---")
	p := g.pool()
	plan, err := p.Plan(t.Context())
	if err != nil || len(plan.Work) != 3 || len(plan.WaitingForRuns) != 1 || len(plan.Skipped) != 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if w := plan.WaitingForRuns[0]; w.Issue.Key != "b" || w.Skip.Code != journal.SkipOverlap || w.Skip.WaitsFor != "a" || w.Skip.Detail != "README" {
		t.Errorf("%+v", w.Skip)
	}
	wait := g.begin(t.Context(), p)
	g.next(3)
	p.Wake() // a look at the backlog meanwhile starts nothing
	g.goOn("c", "d")
	g.wait(g.ended, 2, "ended")
	g.idle()
	g.goOn("a")
	if key := g.next(1)[0]; key != "b" {
		t.Errorf("%s began", key)
	}
	g.goOn("b")
	if s := wait(); s.Count(journal.Succeeded) != 4 || len(s.Skipped) != 0 {
		t.Errorf("%+v", s)
	}
	g.clean()
}

// takenClaims simulates that another process has taken an issue, without a trace.
type takenClaims struct {
	*worktree.Repo
	key string
}

func (c takenClaims) Claim(ctx context.Context, key string, h worktree.Holder, ttl time.Duration) (*worktree.Claim, error) {
	if key == c.key {
		return nil, &worktree.TakenError{}
	}
	return c.Repo.Claim(ctx, key, h, ttl)
}

// An issue that could not be worked after all blocks no other; one that another machine works does, for this sweep.
func TestWaitsOnlyForRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a", "touches: README")
	f.issue("b", "touches: README")
	repo := f.Config.Run.Repo
	f.Config.Claims = takenClaims{repo, "a"}
	if r := f.one(); r.Key != "b" {
		t.Errorf("%s was worked", r.Key)
	}
	f.Config.Claims = nil
	f.issue("c", "touches: README")
	claim, err := repo.Claim(t.Context(), "a", worktree.Holder{Owner: "elsewhere/1/x", Run: "r1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := f.sweep(t.Context())
	if got := skips(s); len(s.Runs) != 0 || got["a"] != journal.SkipClaimed || got["c"] != journal.SkipOverlap {
		t.Errorf("%v", got)
	}
	if r := f.one("c"); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("a person's wish: %+v", r.Verdict)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An issue that declares a file that unmerged work changes waits for the merge; an issue whose files are a guess does not.
func TestWaitsForMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r.Verdict)
	}
	f.issue("b", "touches: [a.txt]")
	f.issue("c", "---\nLike a.txt\n\n---")
	s := f.sweep(t.Context())
	if got := outcomes(s); len(got) != 1 || got["c"] != journal.Succeeded {
		t.Errorf("%v", got)
	}
	if n := len(s.Skipped); n == 0 || s.Skipped[n-1].Skip != (journal.Skip{Code: journal.SkipUnmerged, WaitsFor: "a", Where: "ralph/a", Detail: "a.txt"}) {
		t.Errorf("%+v", s.Skipped)
	}
	f.git(f.repo, "merge", "-q", "--squash", "ralph/a")
	f.commit("take it")
	if r := f.one(); r.Key != "b" {
		t.Errorf("%+v", r)
	}
}

// No call begins more work than the limit of open requests allows.
func TestMaxOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, strings.Replace(commits, "cat >/dev/null;", `cat >/dev/null; [ "$RALPH_ISSUE_KEY" != b ] || exit 1;`, 1))
	f.Config.MaxOpen = 2
	for _, key := range []string{"a", "b", "c", "d"} {
		f.issue(key)
	}
	p := f.pool()
	plan, err := p.Plan(t.Context())
	if err != nil || len(plan.Work) != 2 || len(plan.Skipped) != 2 || plan.Skipped[0].Skip != (journal.Skip{Code: journal.SkipOpen, Detail: "2 of 2"}) {
		t.Fatalf("%+v, %v", plan, err)
	}
	s := f.sweep(t.Context())
	if got := outcomes(s); len(got) != 3 || got["b"] != journal.Failed || got["c"] != journal.Succeeded { // b has nothing open
		t.Errorf("%v", got)
	}
	if got := skips(s); got["d"] != journal.SkipOpen {
		t.Errorf("%v", got)
	}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 {
		t.Errorf("%v", outcomes(s))
	}
	if r := f.one("d"); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("a person's wish: %+v", r.Verdict)
	}
	f.Config.MaxOpen = -1
	if _, err := pool.New(f.Config); err == nil {
		t.Error("a limit below zero")
	}
	f.clean()
}
