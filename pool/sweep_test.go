package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
)

func TestSweepWorksTheWholeBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	for i := range 6 {
		f.issue(fmt.Sprintf("task-%d", i))
	}
	f.issue("other", "labels: [bug]")
	f.Config.Run.Gate = lines(`test -f "$RALPH_ISSUE_KEY.txt"`)
	s := f.sweep(t.Context())
	if got := s.Count(journal.Succeeded); got != 6 {
		t.Fatalf("%d succeeded, want 6: %+v", got, s)
	}
	for i := range 6 {
		key := fmt.Sprintf("task-%d", i)
		if got := f.git(f.repo, "log", "--format=%s", "main..ralph/"+key); got != "work on "+key {
			t.Errorf("branch of %s has %q", key, got)
		}
		text := f.text(key)
		for _, want := range []string{"labels: [in-review]", "Please do " + key + ".", "**ralph: succeeded**", "passed"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", key, want, text)
			}
		}
	}
	if strings.Contains(f.text("other"), "ralph:") {
		t.Error("an issue without the label was touched")
	}
	f.clean()
	if again := f.sweep(t.Context()); len(again.Runs) != 0 {
		t.Errorf("a second sweep worked %d issues again", len(again.Runs))
	}
}

func TestMergedIssueFreesWhatItBlocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("first")
	f.issue("second", "blocked_by: [first]")
	f.issue("third", "blocked_by: [second]")
	f.Config.Run.Publish = journal.PublishMerge
	s := f.sweep(t.Context())
	if got := s.Count(journal.Succeeded); got != 3 {
		t.Fatalf("%d succeeded, want 3: %+v", got, s)
	}
	for _, key := range []string{"first", "second", "third"} {
		if !strings.Contains(f.text(key), "state: closed") {
			t.Errorf("%s is not closed:\n%s", key, f.text(key))
		}
		if !f.exists(key + ".txt") {
			t.Errorf("the checkout lacks the work of %s", key)
		}
	}
	f.clean()
}

// A gate is the project's code, which the agent has written: commits of the gate are not published.
func TestCommitsOfTheGateAreNotPublished(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("sly")
	f.Config.Run.Publish, f.Config.Run.Protected = journal.PublishMerge, publish.ProtectedPaths()
	f.Config.Run.Gate = lines("test -e .github || { mkdir -p .github/workflows && echo x > .github/workflows/x.yml && git add -A && git commit -qm sly; }")
	f.one()
	if out := f.git(f.repo, "log", "--name-only", "--format=", "main"); strings.Contains(out, "x.yml") {
		t.Errorf("merged: %s", out)
	}
	f.clean()
}

// While an agent works, in any iteration, its worktree counts as unsaved, so that nobody removes it unseen.
func TestWorktreeIsUnsavedInEveryIteration(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Run.Options.Command = []string{"sh", "-c", strings.ReplaceAll(gated, "RALPH_ISSUE_KEY", "RALPH_ITERATION") + "; exit 1"}
	g.issue("a")
	wait := g.begin(t.Context(), g.pool())
	for n := range 2 {
		g.next(1)
		trees, err := g.Config.Run.Repo.Trees(t.Context())
		if err != nil || len(trees) != 1 || !trees[0].Unsaved() {
			t.Errorf("iteration %d: %+v, %v", n+1, trees, err)
		}
		g.goOn(fmt.Sprint(n + 1))
	}
	wait()
	g.clean()
}

func TestFailingIssueStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `case $RALPH_ISSUE_KEY in bad) exit 3;; esac; `+commits)
	f.issue("bad", "priority: 1")
	f.issue("good")
	f.Config.Parallel = 1
	s := f.sweep(t.Context())
	if s.Count(journal.Failed) != 1 || s.Count(journal.Succeeded) != 1 {
		t.Fatalf("want one failed, one succeeded: %+v", s.Runs)
	}
	f.clean()
}

func TestGateFeedbackReachesTheNextIteration(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `p=$(cat); case $p in *"BROKEN-BY-GATE"*) touch fixed;; *) touch first;; esac
git add -A; git commit -qm step; echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	f.Config.Run.Gate = lines(`test ! -f first || test -f fixed || { printf 'BROKEN-%s' BY-GATE; exit 1; }`)
	run := f.one()
	if run.Verdict.Outcome != journal.Succeeded || len(run.Facts.Iterations) != 2 || run.Commits != 2 {
		t.Fatalf("%+v", run.Verdict)
	}
}

func TestAttemptsEndWithAHuman(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Gate = lines("git rev-list --count HEAD; false")
	f.Config.Run.Retry = journal.Limits{MaxAttempts: 2, Backoff: time.Nanosecond}
	for attempt := 1; attempt <= 2; attempt++ {
		run := f.one()
		if run.Verdict.Outcome != journal.GateFailed || run.Attempt != attempt {
			t.Fatalf("attempt %d: %+v", attempt, run)
		}
	}
	text := f.text("a")
	if !strings.Contains(text, "labels: [no-human, needs-human]") || !strings.Contains(text, "it continues from the commits so far") {
		t.Errorf("not handed to a human:\n%s", text)
	}
	s := f.sweep(t.Context())
	if len(s.Runs) != 0 || len(s.Skipped) != 1 || !strings.Contains(report.Skip(s.Skipped[0].Skip), "needs a human") {
		t.Fatalf("picked again: %+v", s)
	}
	f.Config.Run.Gate = nil
	run := f.only(f.sweep(t.Context(), "a"))
	if run.Verdict.Outcome != journal.Succeeded || run.Attempt != 1 || run.Commits < 2 {
		t.Fatalf("the person's own try must start anew, from the commits so far: %+v", run)
	}
	if text := f.text("a"); !strings.Contains(text, "labels: [in-review]") {
		t.Errorf("labels are wrong:\n%s", text)
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "exit 1")
	f.issue("a")
	f.one()
	s := f.sweep(t.Context())
	if len(s.Runs) != 0 || len(s.Skipped) != 1 || !strings.Contains(report.Skip(s.Skipped[0].Skip), s.Skipped[0].Skip.Until.Local().Format("waits until 2006-01-02 15:04:05 MST:")) {
		t.Fatalf("%+v", s)
	}
	f.write(".ralph/backlog/a.md", "---\ntitle: better said\nlabels: [no-human]\n---\nnow do it\n")
	if s := f.sweep(t.Context()); len(s.Runs) != 1 {
		t.Fatalf("an issue edited by a person need not wait: %+v", s)
	}
}

func TestSetupFailureCostsNoAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Setup = lines("echo no network; exit 4")
	run := f.one()
	if run.Verdict.Outcome != journal.Failed || run.Verdict.Counted || !strings.Contains(report.Reason(run.Verdict.Reason), "setup") {
		t.Fatalf("%+v", run.Verdict)
	}
	if len(run.Facts.Iterations) != 0 {
		t.Error("an agent ran after a failed setup")
	}
}

func TestQuestionIsAskedAndItsAnswerTakenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `p=$(cat); case $p in *BLUE*) `+commits+`;; *) echo "<promise>COMPLETE</promise><needs-info>Which colour?</needs-info>";; esac`)
	f.issue("a")
	run := f.one()
	if run.Verdict.Outcome != journal.NeedsInfo || !strings.Contains(f.text("a"), "Which colour?") {
		t.Fatalf("%+v\n%s", run.Verdict, f.text("a"))
	}
	if s := f.sweep(t.Context()); len(s.Runs) != 0 {
		t.Fatal("picked again without an answer")
	}
	f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "Please do a.", "Please do a. In BLUE.", 1))
	run = f.one()
	if run.Verdict.Outcome != journal.Succeeded || strings.Contains(f.labels("a"), "needs-info") {
		t.Fatalf("%+v\n%s", run.Verdict, f.text("a"))
	}
}

// A question stays answered if ralph dies in the run that takes up the answer.
func TestAnswerOutlivesADeath(t *testing.T) {
	t.Parallel()
	for save := range 3 {
		f := newFixture(t, `p=$(cat); case $p in *BLUE*) `+commits+`;; *) echo "<promise>COMPLETE</promise><needs-info>Which colour?</needs-info>";; esac`)
		f.issue("a")
		f.one()
		f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "Please do a.", "Please do a. In BLUE.", 1))
		m, died := f.dieAt(save+1, true)
		if !died {
			t.Fatal("ralph did not die")
		}
		f.bury(f.repo)
		if run := f.one(); run.Verdict.Outcome != journal.Succeeded || strings.Contains(f.labels("a"), "needs-info") {
			t.Errorf("died at %s: %+v\n%s", m.stage, run.Verdict, f.text("a"))
		}
	}
}

func TestNoChangeGoesToAHuman(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo "<no-change>it is there</no-change><promise>COMPLETE</promise>"`)
	f.issue("a")
	run := f.one()
	if run.Verdict.Outcome != journal.NoChange || !strings.Contains(f.text("a"), "needs-human") {
		t.Fatalf("%+v\n%s", run.Verdict, f.text("a"))
	}
}

func TestStopTakesTheWorkBackAndReleases(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.issue("b")
	f.Config.Parallel = 1
	f.Config.Run.StopGrace = time.Minute
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.onStarted(func(string) { stop(nil) })
	s := f.sweep(ctx)
	run := f.only(s)
	if run.Verdict.Outcome != journal.Interrupted || run.Commits != 1 || run.WIP == "" || !s.Interrupted {
		t.Fatalf("%+v", s)
	}
	if !strings.Contains(f.text(run.Key), "**ralph: interrupted**") {
		t.Errorf("not reported:\n%s", f.text(run.Key))
	}
	f.clean()
}

func TestClosedIssueSupersedesItsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.Config.Run.Reconcile = time.Millisecond
	f.onStarted(func(string) { f.issue("a", "state: closed") })
	run := f.one()
	if run.Verdict.Outcome != journal.Superseded || run.Commits != 1 {
		t.Fatalf("%+v", run.Verdict)
	}
	f.clean()
}

func TestTwoPoolsShareOneBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	for i := range 12 {
		f.issue(fmt.Sprintf("task-%02d", i))
	}
	second := f.config(commits)
	var wg sync.WaitGroup
	runs := make([]pool.Summary, 2)
	for i, c := range []pool.Config{f.Config, second} {
		wg.Go(func() {
			p, err := pool.New(c)
			if err == nil {
				runs[i], err = p.Sweep(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	worked := map[string]int{}
	for _, s := range runs {
		for _, r := range s.Runs {
			worked[r.Key]++
			if r.Verdict.Outcome != journal.Succeeded {
				t.Errorf("%s: %+v", r.Key, r.Verdict)
			}
		}
	}
	for i := range 12 {
		if key := fmt.Sprintf("task-%02d", i); worked[key] != 1 {
			t.Errorf("%s was worked %d times", key, worked[key])
		}
	}
	f.clean()
}

func TestPlanSaysWhyNot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a-late", "created: 2024-02-02")
	f.issue("b-early", "created: 2024-01-01")
	f.issue("c-urgent", "priority: 1")
	f.issue("d-blocked", "blocked_by: a-late")
	f.issue("e-plain", "labels: []")
	f.issue("f-closed", "state: closed")
	f.write(".ralph/backlog/g-broken.md", "---\ntitle: [\n---\n")
	p, err := pool.New(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range plan.Work {
		got = append(got, i.Key)
	}
	if want := "c-urgent b-early a-late"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	reasons := map[string]string{}
	for _, s := range plan.Skipped {
		reasons[s.Issue.Key] = report.Skip(s.Skip)
	}
	if reasons["d-blocked"] != "blocked by a-late" || reasons["e-plain"] != "lacks label no-human" || len(reasons) != 2 {
		t.Errorf("reasons %v", reasons)
	}
	if len(plan.Problems) != 1 || !strings.Contains(plan.Problems[0].Where, "g-broken.md") {
		t.Errorf("problems %v", plan.Problems)
	}
	var unknown *backlog.UnknownKeyError
	if _, err := p.Plan(t.Context(), "c-urgnt"); !errors.As(err, &unknown) || unknown.Nearest != "c-urgent" {
		t.Errorf("unknown key: %v", err)
	}
}

// Event fields show that a run has merged its commits, and that a sweep has nothing to do, so that observers need not read texts.
func TestEventsSayWhatIsMergedAndIdle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `case $RALPH_ISSUE_KEY in a) `+commits+`;; esac`)
	f.issue("a")
	f.issue("b")
	f.Config.Run.Publish = journal.PublishMerge
	f.sweep(t.Context())
	f.sweep(t.Context())
	f.mu.Lock()
	defer f.mu.Unlock()
	var idle []bool
	ended := 0
	for _, e := range f.events {
		switch {
		case e.Kind == journal.EventEnded:
			if ended++; e.Merged != (e.Outcome == journal.Succeeded) {
				t.Errorf("merged: %+v", e)
			}
		case e.Kind == journal.EventSweep && strings.Contains(e.Text, " to work"):
			idle = append(idle, e.Idle)
		}
	}
	if !slices.Equal(idle, []bool{false, true}) || ended != 2 {
		t.Errorf("%d runs ended; sweeps are idle: %v", ended, idle)
	}
}
