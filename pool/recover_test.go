package pool_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// pretend makes the journal look as if ralph had died in the last run of an issue, at a stage. change may change more.
func (f *fixture) pretend(key string, stage journal.Stage, change func(*journal.Record)) {
	f.t.Helper()
	runs := f.runs(key)
	r := runs[len(runs)-1]
	r.Stage, r.Ended, r.PID, r.Published = stage, time.Time{}, 0, ""
	r.Facts.Done = false
	if change != nil {
		change(&r)
	}
	if err := f.store.Memory.Save(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
	for _, ref := range strings.Fields(f.git(f.repo, "for-each-ref", "--format=%(refname)", "refs/ralph/claims")) {
		f.git(f.repo, "update-ref", "-d", ref)
	}
}

// For a run that died after its worktree was removed, the facts decide: commits that the base contains were published.
func TestDeathAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.one()
	f.pretend("a", journal.StagePublish, nil)
	f.issue("a") // nobody has closed it yet
	f.sweep(t.Context())
	runs := f.runs("a")
	if len(runs) != 1 || runs[0].Verdict.Outcome != journal.Succeeded || runs[0].Ended.IsZero() {
		t.Fatalf("%+v", runs)
	}
	f.clean()
}

// The same, but the base lacks the commits: nothing may count as published.
func TestDeathBeforeTheMergeWithoutAWorktree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one() // on its branch only
	f.pretend("a", journal.StagePublish, func(r *journal.Record) { r.Settings.Publish = journal.PublishMerge })
	f.Config.Run.Publish = journal.PublishMerge
	f.issue("a") // still to be done
	f.sweep(t.Context())
	runs := f.runs("a")
	if len(runs) != 2 || runs[0].Verdict.Outcome != journal.Interrupted || runs[1].Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", runs)
	}
	if !f.exists("a.txt") {
		t.Error("it is not merged")
	}
	f.clean()
}

// The numbers of a run's events keep growing when another process continues it.
func TestNumbersOfEventsGrow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.pretend("a", journal.StageReport, func(*journal.Record) {})
	f.sweep(t.Context())
	last, n := uint64(0), 0
	if err := journal.ReadEvents(f.runs("a")[0].Dir, func(e journal.Event) error {
		if n++; e.Seq <= last {
			t.Errorf("event %d (%s) comes after %d", e.Seq, e.Kind, last)
		}
		last = e.Seq
		return nil
	}); err != nil || n < 5 {
		t.Errorf("%d events, %v", n, err)
	}
}

// Commits that the gate has not seen on the present base are never merged.
func TestNothingUngatedIsMerged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("b")
	f.Config.Run.Publish = journal.PublishMerge
	f.Config.Run.Gate = lines(`! { test -f a.txt && test -f b.txt; }`)
	f.onStage(journal.StageVerify, func(journal.Record) { // it lands while b's agent is at work
		f.write("a.txt", "")
		f.commit("somebody else's work")
	})
	s := f.sweep(t.Context())
	if s.Count(journal.GateFailed) != 1 {
		t.Fatalf("%+v", s.Runs)
	}
	if f.exists("b.txt") {
		t.Error("what does not pass the gate was merged")
	}
	f.clean()
}

// Ctrl-C during the gate before the merge merges nothing. The next sweep merges, and starts no agent for it.
func TestStopDuringTheGateBeforeTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	goOn, begun := filepath.Join(t.TempDir(), "go-on"), newPipe(t)
	f.Config.Run.Gate = lines(`test ! -f moved || test -f ` + goOn + ` || { echo > ` + begun.path + `; exec sleep 1000; }`)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	begun.then(func() { stop(nil) })
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("moved", "")
		f.commit("the base moves")
	})
	run := f.only(f.sweep(ctx))
	if !run.Ended.IsZero() || run.Verdict.Outcome != "" || run.Published != "" {
		t.Fatalf("%+v", run)
	}
	if f.exists("a.txt") {
		t.Error("merged although it was stopped")
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.onStage("", nil)
	f.endsWithoutAgent("a", 1)
	if !f.exists("a.txt") {
		t.Error("it is not merged")
	}
	f.clean()
}

// endsWithoutAgent makes this number of sweeps. Then the only run of the issue has succeeded, and a sweep has reported it.
func (f *fixture) endsWithoutAgent(key string, sweeps int) journal.Record {
	f.t.Helper()
	var told []journal.Record
	for range sweeps {
		told = append(told, f.sweep(f.t.Context()).Runs...)
	}
	runs := f.runs(key)
	if len(runs) != 1 || runs[0].Ended.IsZero() || runs[0].Verdict.Outcome != journal.Succeeded {
		f.t.Fatalf("%+v", runs)
	}
	if len(told) != 1 || told[0].ID != runs[0].ID || told[0].Ended.IsZero() {
		f.t.Errorf("the sweeps tell of %+v", told)
	}
	return runs[0]
}

// A merge that local changes in the checkout prevent is made when they are gone.
func TestMergeWaitsForTheCheckout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.write("a.txt", "not committed")
	if run := f.one(); !run.Ended.IsZero() || run.Tries != 1 {
		t.Fatalf("%+v", run)
	}
	if err := os.Remove(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if run := f.endsWithoutAgent("a", 1); run.Published == "" || run.Tries != 0 {
		t.Errorf("%+v", run.Verdict)
	}
	f.clean()
}

// A conflict that a later sweep meets is reported by that sweep, with a command that works after the sweep.
func TestConflictInALeftRunIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo agent > README; git commit -qam work; echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	f.Config.Run.Publish, f.Config.Run.Retry.Backoff = journal.PublishMerge, time.Hour
	f.write("README", "a person's\n")
	if run := f.one(); !run.Ended.IsZero() {
		t.Fatalf("%+v", run)
	}
	f.git(f.repo, "commit", "-qam", "a person's")
	run := f.one()
	if run.Verdict.Outcome != journal.Failed || !run.Verdict.Counted || run.Ended.IsZero() {
		t.Fatalf("%+v", run)
	}
	f.clean()
	_, advice, _ := strings.Cut(run.Verdict.Reason.Detail, "by hand: ")
	if out, err := exec.Command("sh", "-c", advice).CombinedOutput(); err == nil || !strings.Contains(string(out), "CONFLICT (content)") {
		t.Errorf("%q: %v\n%s", advice, err, out)
	}
}

// An issue that is worked again by the sweep that has ended its left run counts once.
func TestIssueWorkedAgainCountsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; git reset -q --hard main; echo $RALPH_ATTEMPT >> README; git commit -qam work; echo "<promise>COMPLETE</promise>"`)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.write("README", "a person's\n")
	f.one()
	f.git(f.repo, "commit", "-qam", "a person's")
	if run := f.only(f.sweep(t.Context(), "a")); run.Verdict.Outcome != journal.Succeeded || run.Attempt != 2 {
		t.Errorf("%+v", run)
	}
}

// Commits that cannot be published in several sweeps are left to a person.
func TestPublishingIsGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.write("a.txt", "not committed")
	f.one()
	f.sweep(t.Context())
	if s := f.sweep(t.Context()); s.Count(journal.Failed) != 1 || len(s.Broken) > 0 {
		t.Fatalf("%+v", s)
	}
	runs := f.runs("a")
	if len(runs) != 1 || runs[0].Verdict.Outcome != journal.Failed || !runs[0].Verdict.Final {
		t.Fatalf("%+v", runs)
	}
	if issue := f.text("a"); !strings.Contains(issue, "needs-human") || !strings.Contains(issue, "a.txt") {
		t.Errorf("the issue does not say so:\n%s", issue)
	}
	f.clean()
}

// unchangeableTracker is a tracker that changes no issue.
type unchangeableTracker struct{ tracker.Tracker }

func (unchangeableTracker) Change(context.Context, string, tracker.Change) error {
	return errors.New("the labels cannot be changed")
}

// An issue whose labels ralph cannot edit is worked once, and the reason is reported.
func TestLabelsThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Tracker = unchangeableTracker{f.Config.Run.Tracker}
	f.issue("a")
	f.one()
	if run := f.endsWithoutAgent("a", 2); run.Unlabelled == "" {
		t.Fatalf("%+v", run.Verdict)
	}
	s := f.sweep(t.Context())
	if len(s.Runs) != 0 || len(s.Skipped) != 1 || !strings.Contains(report.Skip(s.Skipped[0].Skip), "remove label no-human yourself") {
		t.Fatalf("%+v", s)
	}
}

// A report describes the settings with which a run was published, even if ralph is configured differently when the run is
// continued.
func TestTermsOfTheRunHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one() // on its branch
	f.pretend("a", journal.StageReport, nil)
	f.issue("a")
	f.Config.Run.Publish, f.Config.Require = journal.PublishMerge, []string{"another"}
	f.endsWithoutAgent("a", 1)
	if issue := f.text("a"); strings.Contains(issue, "it is merged") || !strings.Contains(issue, "in-review") || strings.Contains(issue, "closed") ||
		strings.Contains(f.labels("a"), "no-human") {
		t.Errorf("the issue says:\n%s", issue)
	}
}

// Two sweeps at once, in one process, meet a run that an earlier one has left: one of them ends it.
func TestTwoSweepsMeetOneLeftRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.write("a.txt", "not committed")
	f.one()
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
	if runs := f.runs("a"); len(runs) != 1 || !strings.HasPrefix(runs[0].Published, "merged") {
		t.Errorf("%+v", runs)
	}
	f.clean()
}

// A run that died before it had counted the earlier ones does not change their counts.
func TestDeathBeforeTheCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; exit 1`)
	f.Config.Run.Agent, f.Config.Run.MaxIterations = pricedAgent{}, 1
	f.Config.Run.Retry = journal.Limits{MaxAttempts: 3, Backoff: -1}
	f.issue("a")
	f.one()
	for range 2 {
		if m, died := f.dieAt(1, true); !died || m.stage != journal.StageClaim {
			t.Fatalf("died %v at %s", died, m.stage)
		}
		f.bury(f.repo)
		if _, err := f.pool().Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		claims, err := f.Config.Run.Repo.Claims(t.Context())
		if r := claims["a"].Record; err != nil || r.Attempts != 1 || r.Failures != 1 || r.Spend.CostUSD != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if r := f.one(); r.Attempt != 2 || r.Earlier.Failures != 1 || r.Earlier.Spent.CostUSD != 1 {
		t.Errorf("attempt %d, earlier %+v", r.Attempt, r.Earlier)
	}
	f.clean()
}

// A run that died while it waited for the claim of another one, which has succeeded, is not the issue's last run.
func TestDeathWithoutTheClaim(t *testing.T) {
	t.Parallel()
	for name, remote := range map[string]bool{"local": false, "remote": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			if remote {
				f.withRemote()
			}
			f.issue("a")
			f.onStage(journal.StageVerify, func(r journal.Record) {
				waiting := journal.Record{Run: r.Run, State: journal.State{Stage: journal.StageClaim, PID: deadPID}}
				waiting.ID, waiting.Started, waiting.Hash = journal.NewID(time.Now()), time.Now(), ""
				f.save(waiting)
			})
			first := f.one()
			if _, err := f.pool().Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if runs := f.runs("a"); len(runs) != 1 || runs[0].ID != first.ID || runs[0].Verdict.Outcome != journal.Succeeded {
				t.Errorf("%+v", runs)
			}
			f.clean()
		})
	}
}

// Recover returns the runs that were cut off, in addition to those that have ended normally.
func TestRecoverTellsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.pretend("a", journal.StageWork, func(*journal.Record) {})
	r, err := f.pool().Recover(t.Context())
	if err != nil || len(r.Finished) != 0 || len(r.Interrupted) != 1 || r.Interrupted[0].Key != "a" || r.Interrupted[0].Ended.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
	lost := false // the cost of the iteration that was cut off
	if err := journal.ReadEvents(r.Interrupted[0].Dir, func(e journal.Event) error {
		lost = lost || e.Kind == journal.EventEnded && e.CostUnknown
		return nil
	}); err != nil || !lost {
		t.Errorf("no event says that the cost is unknown; %v", err)
	}
	f.clean()
}

// TestFailedRecoveryIsSaidOnce: the claim of a run that could not be recovered is not reported as another run to wait for.
func TestFailedRecoveryIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"all": nil, "named": {"a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.Config.Run.Publish = journal.PublishMerge
			f.write("a.txt", "not committed")
			if r := f.one(); !r.Ended.IsZero() {
				t.Fatalf("%+v", r.Verdict)
			}
			dir := f.runs("a")[0].Dir
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if s := f.sweep(t.Context(), keys...); len(s.Runs)+len(s.Skipped) > 0 || len(s.Broken) != 1 || !strings.HasPrefix(s.Broken[0].Skip.Detail, "recover: ") {
				t.Errorf("runs %+v, skipped %+v, broken %+v", s.Runs, s.Skipped, s.Broken)
			}
		})
	}
}
