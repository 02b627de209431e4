package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// clone returns a fixture on another clone of the remote, on the same host, with its own copy of the issues.
func (f *fixture) clone(bare, agent string, keys ...string) *fixture {
	f.t.Helper()
	c := newFixture(f.t, agent)
	c.host = f.host
	c.git(c.repo, "remote", "add", "origin", bare)
	c.git(c.repo, "fetch", "-q", "origin")
	c.git(c.repo, "reset", "-q", "--hard", "origin/main")
	for _, key := range keys {
		c.issue(key)
	}
	c.Config.Run.Repo, c.Config.Run.Publish, c.Config.Run.Protected = c.open("origin"), f.Config.Run.Publish, f.Config.Run.Protected
	return c
}

// Unmerged work that another clone has finished counts, although this clone's backlog does not show it.
func TestOpenWorkOfAnotherClone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	c := f.clone(bare, commits, "a")
	c.issue("b", "touches: [a.txt]")
	f.issue("a")
	f.one()
	plan, err := c.pool().Plan(t.Context())
	if n := len(plan.Skipped); err != nil || len(plan.Work) > 0 || n != 2 || plan.Skipped[1].Skip.Code != journal.SkipUnmerged || plan.Skipped[1].Skip.WaitsFor != "a" {
		t.Errorf("touches: %+v, %v", plan, err)
	}
	c.issue("b", "touches: none")
	c.Config.MaxOpen = 1
	if s := c.sweep(t.Context()); skips(s)["b"] != journal.SkipOpen {
		t.Errorf("max open: %+v", s)
	}
	f.git(f.repo, "merge", "-q", "--squash", "ralph/a")
	f.git(f.repo, "commit", "-qm", "squash")
	f.git(f.repo, "push", "-q", "origin", "main", ":ralph/a")
	if s := c.sweep(t.Context()); outcomes(s)["b"] != journal.Succeeded {
		t.Errorf("merged: %+v", s)
	}
}

// A branch that a person has deleted on the remote no longer counts as open, in the clone that made it and in one that has its
// commits. A branch that was never pushed still counts.
func TestOpenWorkWithoutItsBranch(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishNone} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			bare := f.withRemote()
			f.Config.Run.Publish = publish
			c := f.clone(bare, commits, "a", "b")
			f.issue("a")
			f.one()
			f.issue("b")
			f.Config.MaxOpen, c.Config.MaxOpen = 1, 1
			if publish == journal.PublishBranch {
				c.git(c.repo, "fetch", "-q", "origin")
				for _, one := range []*fixture{f, c} {
					if plan, err := one.pool().Plan(t.Context()); err != nil || len(plan.Work) > 0 {
						t.Errorf("before: %+v, %v", plan, err)
					}
				}
				f.git(bare, "branch", "-D", "ralph/a")
				if plan, err := c.pool().Plan(t.Context()); err != nil || len(plan.Work) != 1 {
					t.Errorf("another clone: %+v, %v", plan, err)
				}
			}
			if plan, err := f.pool().Plan(t.Context()); err != nil || len(plan.Work) != map[journal.Publish]int{journal.PublishBranch: 1}[publish] {
				t.Errorf("the clone that made it: %+v, %v", plan, err)
			}
		})
	}
}

// A remote that declines every push, for example because it became read-only while the agent worked, costs one run of the agent:
// the commits wait in the clone that has them. Another clone starts no agent, neither meanwhile nor when the remote accepts
// pushes again.
func TestRemoteThatDeclinesEverything(t *testing.T) {
	t.Parallel()
	for _, stage := range []journal.Stage{journal.StageWork, journal.StageVerify, journal.StagePublish} {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			agent := `echo x >> ` + ran + `; ` + commits
			f := newFixture(t, agent)
			bare := f.withRemote()
			f.issue("a")
			hook := filepath.Join(bare, "hooks", "pre-receive")
			f.onStage(stage, func(journal.Record) {
				if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'the repository is read-only' >&2\nexit 1\n"), 0o755); err != nil {
					t.Error(err)
				}
			})
			first := f.sweep(t.Context())
			f.onStage(stage, nil)
			if len(first.Runs) != 1 || !first.Runs[0].Ended.IsZero() {
				t.Fatalf("%+v", first)
			}
			f.bury(bare) // the process has ended
			c := f.clone(bare, agent, "a", "b", "c", "d")
			s := c.sweep(t.Context())
			if len(s.Runs) > 0 || s.Unavailable == nil || !strings.Contains(s.Unavailable.Error(), "the repository is read-only") {
				t.Errorf("in another clone: %+v", s)
			}
			told := 0
			for _, e := range c.events {
				if e.Kind == journal.EventProblem {
					told++
				}
			}
			if told != 1 || len(s.Broken) != 1 || skips(s)["a"] != journal.SkipClaimed {
				t.Errorf("told %d times: %+v", told, s)
			}
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			if s := c.sweep(t.Context(), "a"); len(s.Runs) > 0 || skips(s)["a"] != journal.SkipClaimed {
				t.Errorf("in another clone, later: %+v", s)
			}
			if r := f.one(); r.Verdict.Outcome != journal.Succeeded || f.git(f.repo, "rev-parse", "origin/ralph/a") != r.Tip {
				t.Errorf("%+v", r)
			}
			if got, err := os.ReadFile(ran); string(got) != "x\n" || err != nil {
				t.Errorf("the agent ran %q, %v", got, err)
			}
			f.clean()
			c.clean()
		})
	}
}

// A run that loses its claim reports that on this clone's copy of the issue, which nobody else writes to. Otherwise the issue
// would look as if it were worked here forever.
func TestLostClaimIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	bare := f.withRemote()
	f.issue("a")
	f.Config.Run.ProgressReport, f.Config.Run.ClaimTTL, f.Config.Run.Labels.Claimed = time.Nanosecond, 3*time.Second, "working"
	f.onStarted(func(string) {
		if !strings.Contains(f.text("a"), "**ralph: working**") || !strings.Contains(f.labels("a"), "working") {
			t.Errorf("it does not say that it is on:\n%s", f.text("a"))
		}
		f.git(bare, "update-ref", "-d", "refs/ralph/claims/a")
		ctx := context.WithoutCancel(t.Context())
		if _, err := f.Config.Run.Repo.Claim(ctx, "a", worktree.Holder{Owner: "elsewhere/1/x", Run: "of-another-clone"}, time.Hour); err != nil {
			t.Error(err)
		}
	})
	r := f.one()
	text := f.text("a")
	for _, want := range []string{"**ralph: interrupted**: `the claim was lost: it expired, or another ralph took it`", "Next: nothing here; "} {
		if !strings.Contains(text, want) {
			t.Errorf("not %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "ralph: working") || strings.Contains(f.labels("a"), "working") || r.Verdict.Reason.Code != journal.ReasonClaimLost {
		t.Errorf("%+v; it says:\n%s", r.Verdict, text)
	}
}

// A finished issue that a person wants worked again does not count as an older state of the backlog, whatever the outcome of that
// run.
func TestLostClaimOfAnIssueWorkedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `test -f a.txt && { `+endless+`; }; `+commits)
	bare := f.withRemote()
	f.issue("a")
	f.one()
	f.Config.Run.ProgressReport, f.Config.Run.ClaimTTL = time.Nanosecond, 3*time.Second
	finished := f.git(bare, "rev-parse", "refs/ralph/claims/a")
	f.onStarted(func(string) { // another clone has taken the claim over and given it up
		f.git(bare, "update-ref", "refs/ralph/claims/a", finished)
	})
	f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "in-review", "no-human", 1))
	for range 2 {
		if r := f.one(); r.Verdict.Reason.Code != journal.ReasonClaimLost {
			t.Fatalf("%+v", r.Verdict)
		}
	}
}

// A dead run whose issue another clone on this host has meanwhile claimed is ended at once, without waiting for the other clone.
func TestDeadRunOfAnIssueThatAnotherCloneHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	f.issue("a")
	if _, died := f.dieAt(5, true); !died {
		t.Fatal("ralph did not die")
	}
	f.bury(bare)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	if err := f.Config.Run.Tracker.Report(ctx, "a", tracker.Report{Run: f.runs("a")[0].ID, Body: "**ralph: working**"}); err != nil {
		t.Fatal(err)
	}
	other, err := f.Config.Run.Repo.Claim(ctx, "a", worktree.Holder{Owner: host + "/1/x", Run: "a-run-of-the-other-clone"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.sweep(ctx); len(s.Runs) > 0 || skips(s)["a"] != journal.SkipClaimed {
		t.Errorf("%+v", s)
	}
	if text := f.text("a"); strings.Contains(text, "ralph: working") || !strings.Contains(text, "**ralph: interrupted**") {
		t.Errorf("it says:\n%s", text)
	}
	for _, r := range f.runs("a") {
		if r.Ended.IsZero() || r.Verdict.Outcome != journal.Interrupted {
			t.Errorf("the run is left: %+v", r)
		}
	}
	if err := other.Renew(ctx); err != nil {
		t.Errorf("the other clone's claim: %v", err)
	}
	if err := other.Release(ctx); err != nil {
		t.Error(err)
	}
	f.clean()
}

// Two clones die over one issue, the second one after its push. The first run ends without publishing, the second clone reports
// the pushed result, and no agent works again.
func TestDeadRunsOfTwoClones(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	bare := f.withRemote()
	c := f.clone(bare, strings.Replace(commits, "git commit", "echo other >other && git add other && git commit", 1), "a")
	f.issue("a")
	probe := newFixture(t, commits)
	probe.withRemote()
	probe.issue("a")
	m, _ := probe.dieAt(0, true)
	save := slices.Index(m.saved, journal.StagePublish) + 1 // at the next save the branch has been pushed
	if _, died := f.dieAt(save, true); !died {
		t.Fatal("ralph did not die")
	}
	f.buryAll(bare)
	if _, died := c.dieAt(save+1, false); !died {
		t.Fatal("the other ralph did not die")
	}
	pushed := f.git(bare, "rev-parse", "ralph/a")
	f.buryAll(bare)
	f.sweep(t.Context())
	if r := f.runs("a"); len(r) != 1 || r[0].Ended.IsZero() || r[0].Verdict.Reason.Code != journal.ReasonClaimLost {
		t.Errorf("the first: %+v", r)
	}
	c.sweep(t.Context())
	if r := c.runs("a"); len(r) != 1 || r[0].Verdict.Outcome != journal.Succeeded || r[0].Ended.IsZero() {
		t.Errorf("the second: %+v", r)
	}
	if text := c.text("a"); strings.Count(text, "**ralph: succeeded**") != 1 {
		t.Errorf("the second says:\n%s", text)
	}
	if tip := f.git(bare, "rev-parse", "ralph/a"); tip != pushed {
		t.Errorf("the branch has moved from %s to %s", pushed, tip)
	}
}

// expired leaves a claim of issue a, in the name of a run, that has expired by the returned clock.
func (f *fixture) expired(run string) *time.Time {
	f.t.Helper()
	clock := time.Now()
	options := worktree.Options{StateDir: f.Config.Run.Repo.StateDir(), Now: func() time.Time { return clock }}
	repo, err := worktree.Open(f.t.Context(), f.repo, options)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := repo.Claim(f.t.Context(), "a", worktree.Holder{Owner: "x", Run: run}, time.Hour); err != nil {
		f.t.Fatal(err)
	}
	f.Config.Run.Repo, clock = repo, clock.Add(2*time.Hour)
	return &clock
}

// A claim that names only the beginning of run ids ends no run: otherwise anyone who may push could end all runs of a day.
func TestClaimThatNamesNoRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	const day = "20260102"
	f.Config.Run.Sandboxes = reapingProvider{newBindingProvider(nil), func(run string) error {
		if run == day {
			return errors.New("ended " + run)
		}
		return nil
	}}
	f.issue("a")
	f.expired(day)
	if s := f.sweep(t.Context()); outcomes(s)["a"] != journal.Succeeded {
		t.Errorf("%v %v", outcomes(s), skips(s))
	}
}

// If a person has stopped an issue, or taken it from its run, a clone whose own copy does not show that does not work it until
// somebody requests it there again.
func TestStoppedElsewhere(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fixture, p *pool.Pool){
		"stopped":    func(_ *fixture, p *pool.Pool) { p.Stop("a") },
		"unlabelled": func(f *fixture, _ *pool.Pool) { f.issue("a", "labels: []") },
		"closed":     func(f *fixture, _ *pool.Pool) { f.issue("a", "state: closed") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, endless)
			f.Config.Run.Reconcile = 10 * time.Millisecond
			bare := f.withRemote()
			f.issue("a")
			p := f.pool()
			f.onStarted(func(string) { end(f, p) })
			s, err := p.Sweep(t.Context())
			if r := f.only(s); err != nil || r.Verdict.Outcome != journal.Interrupted && r.Verdict.Outcome != journal.Superseded {
				t.Fatalf("%+v, %v", r.Verdict, err)
			}
			if plan, err := p.Plan(t.Context()); err != nil || (len(plan.Work) == 1) != (name == "stopped") {
				t.Errorf("where it was worked, the issue's labels decide: %+v, %v", plan, err)
			}
			c := f.clone(bare, commits, "a")
			if s := c.sweep(t.Context()); len(s.Runs) > 0 || skips(s)["a"] != journal.SkipHalted {
				t.Fatalf("another clone: %+v", s)
			}
			if r, err := c.pool().WorkPlanned(t.Context(), "a", nil); err != nil || r.Skip == nil || r.Skip.Code != journal.SkipHalted {
				t.Errorf("another clone, by an older plan: %+v, %v", r, err)
			}
			planned := func(how string, keys ...string) {
				t.Helper()
				if plan, err := c.pool().Plan(t.Context(), keys...); err != nil || len(plan.Work) != 1 {
					t.Errorf("%s: %+v, %v", how, plan, err)
				}
			}
			planned("named", "a")
			before := c.text("a")
			c.write(".ralph/backlog/a.md", before+"And more.\n")
			planned("edited")
			c.write(".ralph/backlog/a.md", f.text("a"))
			if err := c.Config.Run.Tracker.Change(t.Context(), "a", tracker.Change{AddLabels: []string{"no-human"}, Reopen: true}); err != nil {
				t.Error(err)
			}
			planned("labelled where the copy shows it")
			c.write(".ralph/backlog/a.md", before)
			if err := c.pool().Requeue(t.Context(), "a", "Ada", tracker.Retry, ""); err != nil {
				t.Error(err)
			}
			planned("asked for")
			if r := c.one(); r.Verdict.Outcome != journal.Succeeded || r.Earlier.Stopped {
				t.Errorf("worked again: %+v", r.Verdict)
			}
		})
	}
}

// Anyone who may push can write any number of claims of dead holders. They do not delay a sweep for long.
func TestManyStrayClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	const n = 45
	dead := f.git(f.repo, "commit-tree", "-m", `{"version":1,"nonce":"A","generation":1,"holder":{"owner":"x","run":"r","expires":"2020-01-01T00:00:00Z"}}`, "HEAD^{tree}")
	for i := range n {
		f.git(f.repo, "update-ref", fmt.Sprintf("refs/ralph/claims/stray-%d", i), dead)
	}
	f.git(f.repo, "update-ref", "refs/ralph/claims/no$key", dead)
	for _, want := range []int{n - 20, n - 40, 0} {
		if s := f.sweep(t.Context()); len(s.Broken) > 0 {
			t.Errorf("the sweep says %+v", s.Broken)
		}
		if left := strings.Count(f.git(f.repo, "for-each-ref", "refs/ralph/claims/stray-*"), "stray-"); left != want {
			t.Errorf("%d claims are left, want %d", left, want)
		}
	}
	if f.git(f.repo, "for-each-ref", "refs/ralph/claims/no$key") == "" {
		t.Error("the ref of somebody else is gone")
	}
}

// A report that says that a sweep continues is corrected once another clone has finished the issue.
func TestReportOfAnIssueThatAnotherCloneFinishes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `exit 3`)
	bare := f.withRemote()
	f.issue("a")
	f.Config.Run.Retry.Backoff = -1
	f.one()
	if text := f.text("a"); !strings.Contains(text, "\nNext: nothing; the first sweep") {
		t.Fatalf("it says:\n%s", text)
	}
	run := f.clone(bare, commits, "a").one()
	if s := f.sweep(t.Context()); skips(s)["a"] != journal.SkipDone {
		t.Fatalf("%+v", s)
	}
	text := f.text("a")
	if want := "\nNext: nothing here: `already succeeded by run " + run.ID; !strings.Contains(text, want) || !strings.Contains(text, "**ralph: failed**") {
		t.Errorf("it says:\n%s", text)
	}
	f.sweep(t.Context())
	if again := f.text("a"); again != text {
		t.Errorf("again:\n%s", again)
	}
}
