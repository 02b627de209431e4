package pool_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
)

// pretend makes the journal look as if ralph had died in the run of an issue, at a step.
func (f *fixture) pretend(key string, step pool.Step) {
	f.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(f.state, "state.db"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("UPDATE runs SET step = ?, ended = NULL, pid = 0, verdict = json_remove(verdict, '$.published') WHERE key = ?", step, key); err != nil {
		f.t.Fatal(err)
	}
	f.git(f.repo, "update-ref", "-d", "refs/ralph/claims/"+key)
}

// put puts another value into the verdict of an issue's runs.
func (f *fixture) put(key, path, value string) {
	f.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(f.state, "state.db"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("UPDATE runs SET verdict = json_set(verdict, ?, "+value+") WHERE key = ?", path, key); err != nil {
		f.t.Fatal(err)
	}
}

// A run that died after its worktree was removed is told by the facts: what the base contains was published.
func TestDeathAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.only(f.sweep(t.Context()))
	f.pretend("a", pool.StepPublish)
	f.issue("a") // nobody has closed it yet
	f.sweep(t.Context())
	runs, err := f.Config.Journal.Runs(t.Context(), "a")
	if err != nil || len(runs) != 1 || runs[0].Verdict.Outcome != pool.Succeeded || runs[0].Ended.IsZero() {
		t.Fatalf("%+v, %v", runs, err)
	}
	f.clean()
}

// The same, but the commits are not in the base: nothing may be taken for published.
func TestDeathBeforeTheMergeWithoutAWorktree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.only(f.sweep(t.Context())) // on its branch only
	f.pretend("a", pool.StepPublish)
	f.put("a", "$.terms.publish", `'merge'`)
	f.Config.Publish = pool.PublishMerge
	f.issue("a") // still to be done
	f.sweep(t.Context())
	runs, err := f.Config.Journal.Runs(t.Context(), "a")
	if err != nil || len(runs) != 2 || runs[0].Verdict.Outcome != pool.Interrupted || runs[1].Verdict.Outcome != pool.Succeeded {
		t.Fatalf("%+v, %v", runs, err)
	}
	if _, err := os.Stat(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Error(err)
	}
	f.clean()
}

// What the gate has not seen on the present base is never merged.
func TestNothingUngatedIsMerged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("b")
	f.Config.Publish = pool.PublishMerge
	f.Config.Gate = lines(`! { test -f a.txt && test -f b.txt; }`)
	var once sync.Once
	f.onStep = func(e pool.Event) {
		if e.Step == pool.StepPublish {
			once.Do(func() { // a.txt lands while b's agent was at work
				f.write("a.txt", "")
				f.git(f.repo, "add", "a.txt")
				f.git(f.repo, "commit", "-qm", "somebody else's work")
			})
		}
	}
	s := f.sweep(t.Context())
	if s.Count(pool.GateFailed) != 1 {
		t.Fatalf("%+v", s.Runs)
	}
	if _, err := os.Stat(filepath.Join(f.repo, "b.txt")); err == nil {
		t.Error("what does not pass the gate was merged")
	}
	f.clean()
}

// Ctrl-C while the gate runs again before the merge merges nothing. The next sweep does, and starts no agent for it.
func TestStopDuringTheGateBeforeTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	goOn := filepath.Join(t.TempDir(), "go-on")
	f.Config.Gate = lines(`test ! -f moved || test -f ` + goOn + ` || exec sleep 1000`)
	ctx, stop := context.WithCancelCause(t.Context())
	moved := false
	f.onStep = func(e pool.Event) {
		switch {
		case e.Step != pool.StepPublish:
		case !moved:
			moved = true
			f.write("moved", "")
			f.git(f.repo, "add", "moved")
			f.git(f.repo, "commit", "-qm", "the base moves")
		default:
			stop(nil)
		}
	}
	run := f.only(f.sweep(ctx))
	if !run.Ended.IsZero() || run.Verdict.Outcome != pool.Succeeded || run.Verdict.Published != "" {
		t.Fatalf("%+v", run)
	}
	if _, err := os.Stat(filepath.Join(f.repo, "a.txt")); err == nil {
		t.Error("merged although it was stopped")
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.onStep = nil
	f.endsWithoutAgent("a", 1)
	if _, err := os.Stat(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Error(err)
	}
	f.clean()
}

// endsWithoutAgent sweeps that often; then the only run of the issue has ended as succeeded, which a sweep has told.
func (f *fixture) endsWithoutAgent(key string, sweeps int) pool.Record {
	f.t.Helper()
	var told []pool.Record
	for range sweeps {
		told = append(told, f.sweep(f.t.Context()).Runs...)
	}
	runs, err := f.Config.Journal.Runs(f.t.Context(), key)
	if err != nil || len(runs) != 1 || runs[0].Ended.IsZero() || runs[0].Verdict.Outcome != pool.Succeeded {
		f.t.Fatalf("%+v, %v", runs, err)
	}
	if len(told) != 1 || told[0].Run != runs[0].Run || told[0].Ended.IsZero() {
		f.t.Errorf("the sweeps tell of %+v", told)
	}
	return runs[0]
}

// A merge that the checkout's own changes keep from its place is made when they are out of the way.
func TestMergeWaitsForTheCheckout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.write("a.txt", "not committed")
	if run := f.only(f.sweep(t.Context())); !run.Ended.IsZero() || run.Verdict.Tries != 1 {
		t.Fatalf("%+v", run)
	}
	if err := os.Remove(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if run := f.endsWithoutAgent("a", 1); run.Verdict.Published == "" || run.Verdict.Tries != 0 {
		t.Errorf("%+v", run.Verdict)
	}
	f.clean()
}

// A conflict that a later sweep meets is that sweep's to tell, with a command that works when all of it is over.
func TestConflictInALeftRunIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo agent > README; git commit -qam work; echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	f.Config.Publish, f.Config.Retry.Backoff = pool.PublishMerge, time.Hour
	f.write("README", "a person's\n")
	if run := f.only(f.sweep(t.Context())); !run.Ended.IsZero() {
		t.Fatalf("%+v", run)
	}
	f.git(f.repo, "commit", "-qam", "a person's")
	run := f.only(f.sweep(t.Context()))
	if run.Verdict.Outcome != pool.Failed || !run.Verdict.Counted || run.Ended.IsZero() {
		t.Fatalf("%+v", run)
	}
	f.clean()
	_, advice, _ := strings.Cut(run.Verdict.Reason, "by hand: ")
	if out, err := exec.Command("sh", "-c", advice).CombinedOutput(); err == nil || !strings.Contains(string(out), "CONFLICT (content)") {
		t.Errorf("%q: %v\n%s", advice, err, out)
	}
}

// An issue that is worked again by the sweep that has ended its left run counts once.
func TestIssueWorkedAgainCountsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; git reset -q --hard main; echo $RALPH_ATTEMPT >> README; git commit -qam work; echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.write("README", "a person's\n")
	f.only(f.sweep(t.Context()))
	f.git(f.repo, "commit", "-qam", "a person's")
	if run := f.only(f.sweep(t.Context(), "a")); run.Verdict.Outcome != pool.Succeeded || run.Attempt != 2 {
		t.Errorf("%+v", run)
	}
}

// What cannot be published in several sweeps is a person's.
func TestPublishingIsGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.write("a.txt", "not committed")
	f.only(f.sweep(t.Context()))
	f.sweep(t.Context())
	if s := f.sweep(t.Context()); s.Count(pool.Failed) != 1 || len(s.Broken) > 0 {
		t.Fatalf("%+v", s)
	}
	runs, err := f.Config.Journal.Runs(t.Context(), "a")
	if err != nil || len(runs) != 1 || runs[0].Verdict.Outcome != pool.Failed || !runs[0].Verdict.Final {
		t.Fatalf("%+v, %v", runs, err)
	}
	if issue := f.text("a"); !strings.Contains(issue, "needs-human") || !strings.Contains(issue, "a.txt") {
		t.Errorf("the issue does not say so:\n%s", issue)
	}
	f.clean()
}

// An issue whose labels ralph cannot edit is worked once, and the reason is told.
func TestLabelsThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a", "labels: &anchor [no-human]")
	f.only(f.sweep(t.Context()))
	if run := f.endsWithoutAgent("a", 2); run.Verdict.Unlabelled == "" {
		t.Fatalf("%+v", run.Verdict)
	}
	s := f.sweep(t.Context())
	if len(s.Runs) != 0 || len(s.Skipped) != 1 || !strings.Contains(s.Skipped[0].Reason, "take label no-human away") {
		t.Fatalf("%+v", s)
	}
}

// A run is told by what it was published by, however ralph is configured when it is taken up again.
func TestTermsOfTheRunHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.only(f.sweep(t.Context())) // on its branch
	f.pretend("a", pool.StepReport)
	f.issue("a")
	f.Config.Publish, f.Config.Require = pool.PublishMerge, []string{"another"}
	f.endsWithoutAgent("a", 1)
	if issue := f.text("a"); strings.Contains(issue, "it is merged") || !strings.Contains(issue, "in-review") || strings.Contains(issue, "closed") ||
		strings.Contains(issue, "no-human") {
		t.Errorf("the issue says:\n%s", issue)
	}
}

// Two sweeps at once, in one process, meet a run that an earlier one has left: one of them ends it.
func TestTwoSweepsMeetOneLeftRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Publish = pool.PublishMerge
	f.write("a.txt", "not committed")
	f.only(f.sweep(t.Context()))
	if err := os.Remove(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Fatal(err)
	}
	workers, err := pool.New(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	var told atomic.Int32
	for range 2 {
		both.Go(func() {
			s, err := workers.Sweep(t.Context())
			if err != nil || len(s.Broken) > 0 {
				t.Errorf("%+v, %v", s, err)
			}
			told.Add(int32(len(s.Runs)))
		})
	}
	both.Wait()
	if told.Load() != 1 {
		t.Errorf("%d sweeps tell of the run", told.Load())
	}
	if runs, err := f.Config.Journal.Runs(t.Context(), "a"); err != nil || len(runs) != 1 || !strings.HasPrefix(runs[0].Verdict.Published, "merged") {
		t.Errorf("%+v, %v", runs, err)
	}
	f.clean()
}
