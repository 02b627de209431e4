package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// An issue whose runs end again and again with ralph's death is left to a person, too: each run has been paid for.
func TestDeathAfterDeathEndsWithAPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `exit 1`)
	f.Config.Run.Retry = journal.Limits{MaxAttempts: 100, Backoff: -1}
	f.issue("a")
	f.one()
	for n := 1; n < decide.MaxFailures; n++ {
		if strings.Contains(f.labels("a"), "needs-human") {
			t.Fatalf("after %d failures: %s", n, f.text("a"))
		}
		f.sweep(t.Context())
		f.pretend("a", journal.StageWork, nil)
	}
	s := f.sweep(t.Context())
	runs := f.runs("a")
	if len(runs) != decide.MaxFailures || skips(s)["a"] != journal.SkipHuman {
		t.Errorf("%d runs; %+v", len(runs), s)
	}
	if last := runs[len(runs)-1].Verdict; !last.Final || last.Outcome != journal.Interrupted {
		t.Errorf("%+v", last)
	}
	if text := f.text("a"); strings.Count(text, "**ralph: ") != 1 || !strings.Contains(text, "the run was cut off, at the end of 10 failures in a row") || f.labels("a") == "" {
		t.Errorf("reported:\n%s", text)
	}
}

// unreadableForge is a tracker whose closed requests cannot be read.
type unreadableForge struct{ tracker.Tracker }

func (unreadableForge) OpenRequest(context.Context, tracker.Request) (tracker.RequestRef, error) {
	return tracker.RequestRef{}, nil
}

func (unreadableForge) RejectedHead(context.Context, string, string) (commit, url string, err error) {
	return "", "", errors.New("may not look at requests")
}

// A failure before the first iteration uses up no attempt and repeats itself. In the end a person has the issue, with one report
// that says what failed and what to do.
func TestFailuresThatUseNoAttemptEndWithAPerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage     func(f *fixture)
		says, next string
	}{
		"setup": {func(f *fixture) { f.Config.Run.Setup = lines("exit 3") }, "exit 3", "Find out what is broken; then work the issue again."},
		"before the run": {func(f *fixture) {
			f.withRemote()
			f.Config.Run.Tracker, f.Config.Run.Publish = unreadableForge{f.Config.Run.Tracker}, journal.PublishRequest
		}, "may not look at requests", "has to fix it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.Config.Run.Retry.Backoff = -1
			f.issue("a")
			c.damage(f)
			for n := range decide.MaxFailures {
				s := f.sweep(t.Context())
				if strings.Contains(f.labels("a"), "needs-human") != (n == decide.MaxFailures-1) {
					t.Fatalf("after %d sweeps: %s\n%+v", n+1, f.text("a"), s)
				}
			}
			if s := f.sweep(t.Context()); skips(s)["a"] != journal.SkipHuman {
				t.Errorf("%+v", s)
			}
			text := f.text("a")
			if strings.Count(text, "**ralph: ") != 1 || !strings.Contains(text, c.says) || !strings.Contains(text, c.next) {
				t.Errorf("reported:\n%s", text)
			}
			for _, r := range f.runs("a") {
				if r.Verdict.Counted || len(r.Facts.Iterations) > 0 || r.Ended.IsZero() {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Refs of an issue whose commits are gone, for example after a power loss, are removed before its run, so that no agent works in
// vain.
func TestBrokenRefsOfAnIssue(t *testing.T) {
	t.Parallel()
	const branch, work, claim = "refs/heads/ralph/a", "refs/ralph/work/a", "refs/ralph/claims/a"
	for name, refs := range map[string][]string{"branch": {branch}, "record": {work}, "all": {branch, work, "refs/ralph/wip/a", claim}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			for _, ref := range refs {
				f.write(filepath.Join(".git", ref), strings.Repeat("1", 40)+"\n")
			}
			if slices.Contains(refs, claim) { // it counts as given up after an hour
				then := time.Now().Add(-2 * time.Hour)
				if err := os.Chtimes(filepath.Join(f.repo, ".git", claim), then, then); err != nil {
					t.Fatal(err)
				}
			}
			if r := f.one(); r.Verdict.Outcome != journal.Succeeded || len(r.Facts.Iterations) != 1 {
				t.Errorf("%+v", r)
			}
			if n := strings.Count(f.text("a"), "**ralph: "); n != 1 {
				t.Errorf("%d reports", n)
			}
			f.git(f.repo, "fsck", "--no-dangling")
			f.clean()
		})
	}
}

// Leftovers of killed processes of other issues stop no sweep: the sweep removes them or puts them aside, and reports that.
func TestSweepTidies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	spec := worktree.Spec{Run: "r", Key: "left", Branch: "ralph/left"}
	var err error
	if spec.Base, err = f.Config.Run.Repo.Base(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	tree, err := f.Config.Run.Repo.Add(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(f.repo, ".git", "refs", "ralph", "wip", "left.lock")
	f.write(".git/refs/ralph/wip/left.lock", "")
	f.git(f.repo, "update-ref", "refs/ralph/claims/junk", "HEAD")
	claim, then := filepath.Join(f.repo, ".git/refs/ralph/claims/junk"), time.Now().Add(-2*time.Hour)
	if err := errors.Join(os.WriteFile(tree.Dir()+".json", []byte("{"), 0o600), os.Chtimes(lock, then, then), os.Chtimes(claim, then, then)); err != nil {
		t.Fatal(err)
	}
	f.issue("a")
	f.issue("left")
	if s := f.sweep(t.Context()); s.Count(journal.Succeeded) != 2 || len(s.Broken) > 0 {
		t.Errorf("%+v", s)
	}
	f.clean()
	if f.exists(".git/refs/ralph/claims/junk") {
		t.Error("a claim that nobody can read stays")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	said := ""
	for _, e := range f.events {
		if e.Kind == journal.EventWarning {
			said += e.Text + "\n"
		}
	}
	if !strings.Contains(said, lock) || !strings.Contains(said, filepath.Join(f.state, "kept")) {
		t.Errorf("said: %s", said)
	}
}

// A leftover of an issue stays while a run of this pool's namespace works the issue. Runs of other namespaces do not count.
func TestSweepTidiesItsNamespace(t *testing.T) {
	t.Parallel()
	for pool, stays := range map[string]bool{"mine": true, "": false} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.Config.Run.Pool = "mine"
			f.issue("a")
			live := f.one()
			live.ID, live.Pool, live.Key, live.Stage, live.Ended, live.PID = "live", pool, "left", journal.StageWork, time.Time{}, os.Getpid()
			var err error
			if live.Process, err = proc.Started(os.Getpid()); err != nil {
				t.Fatal(err)
			}
			stray := filepath.Join(f.state, "worktrees", "left-live")
			if err := errors.Join(f.store.Memory.Save(t.Context(), live), os.MkdirAll(stray, 0o700)); err != nil {
				t.Fatal(err)
			}
			f.sweep(t.Context())
			if _, err := os.Lstat(stray); (err == nil) != stays {
				t.Errorf("the leftover: %v", err)
			}
		})
	}
}

// Commits that change no file are no success, whatever the result of the gate.
func TestCommitsThatChangeNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{
		"empty":   `git commit -q --allow-empty -m x`,
		"undone":  `echo x >new && git add new && git commit -qm x && git revert --no-edit HEAD >/dev/null`,
		"touched": `git commit -q --allow-empty -m x && git commit -q --allow-empty -m y`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+do+done)
			f.Config.Run.Publish = journal.PublishMerge
			f.issue("a")
			before := f.git(f.repo, "rev-parse", "main")
			if r := f.one(); r.Verdict.Outcome != journal.NoChange || r.Verdict.Reason.Code != journal.ReasonUnchanged || !r.Verdict.Final {
				t.Errorf("%+v", r.Verdict)
			}
			if f.git(f.repo, "rev-parse", "main") != before || !strings.Contains(f.labels("a"), "needs-human") {
				t.Errorf("merged, or nobody has it:\n%s", f.text("a"))
			}
		})
	}
}
