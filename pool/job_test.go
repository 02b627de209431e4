package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// job returns a prompt for the fixture's agent.
func (f *fixture) job(s job.Strategy) job.Job {
	j := job.Job{Run: f.Config.Run, Strategy: s}
	j.Run.Tracker, j.Run.MaxIterations = nil, 0
	j.Run.Prompt = prompt.Prompt{Inline: "do it"}
	j.Run.Options.Command = []string{"sh", "-c", `echo x >> x; git add -A; git commit -qm "$RALPH_RUN"; echo "<promise>COMPLETE</promise>"`}
	return j
}

func do(t *testing.T, j job.Job) run.Result {
	t.Helper()
	res, err := j.Do(t.Context())
	if err != nil || res.Deferred != nil || res.Record.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
	return res
}

// A job on a branch continues there, whatever sandbox the next one has.
func TestJobOnABranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	j := f.job(job.StrategyBranch)
	j.Branch = "topic"
	for n := 1; n <= 3; n++ {
		j.Run.Sandboxes = newBindingProvider(nil)
		if n == 3 {
			j.Run.Sandboxes = sandboxes.NewNone(sandboxes.NoneConfig{})
		}
		res := do(t, j)
		if got := len(strings.Fields(f.git(f.repo, "rev-list", "main..topic"))); got != n || len(res.Commits) != n {
			t.Errorf("job %d: %d commits on the branch, result %+v", n, got, res.Commits)
		}
	}
}

// The job before may have had a sandbox that shows layers, while this one cannot.
func TestJobOnALayeredBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	repo, err := worktree.Open(t.Context(), f.repo, worktree.Options{StateDir: f.state, Layers: 1 << 30, LayerMinFiles: 1})
	if err != nil {
		t.Fatal(err)
	}
	base, err := repo.Base(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Add(t.Context(), worktree.Spec{
		Run: "earlier", Key: tracker.Key("branch-topic"), Branch: "topic", Base: base, Private: true,
		Layers: func(context.Context, string) error { return nil },
	})
	if err != nil || !tree.Layered() {
		t.Fatalf("layered %t, %v", tree.Layered(), err)
	}
	j := f.job(job.StrategyBranch)
	j.Branch, j.Run.Sandboxes = "topic", newBindingProvider(nil)
	if res := do(t, j); len(res.Commits) != 1 {
		t.Errorf("commits %+v", res.Commits)
	}
}

// Every strategy puts the commits into its own place, and a command runs like a prompt.
func TestJobStrategies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	if res := do(t, f.job(job.StrategyMerge)); res.Merged == "" || len(res.Commits) != 1 {
		t.Errorf("%+v", res)
	}
	if res := do(t, f.job(job.StrategyHead)); len(res.Commits) != 1 || f.git(f.repo, "rev-list", "--count", "main") != "3" {
		t.Errorf("%+v", res)
	}
	command := f.job(job.StrategyMerge)
	command.Command = &run.Command{Argv: []string{"sh", "-c", "exit 3"}}
	res, err := command.Do(t.Context())
	if err != nil || res.Record.Verdict.Outcome != journal.Failed || res.Record.Facts.Exit == nil || *res.Record.Facts.Exit != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	if branches := f.git(f.repo, "branch", "--format=%(refname:short)"); branches != "main" {
		t.Errorf("branches are left: %s", branches)
	}
	f.clean()
}

// The rules for an issue's run hold for a job: commits of a failed agent, or against the policy, are not merged.
func TestJobThatIsNotMerged(t *testing.T) {
	t.Parallel()
	const work = `echo x >> x; git add -A; git commit -qm half; `
	for name, c := range map[string]struct {
		script  string
		outcome journal.Outcome
	}{
		"it exits with 7":  {work + `exit 7`, journal.Failed},
		"it falls silent":  {work + `exec sleep 1000`, journal.Failed},
		"it is never done": {work + `echo "more to do"`, journal.Failed},
		"a protected path": {evil + `git commit -qm evil` + done, journal.PolicyBlocked},
		"a secret":         {`echo "the key is a-value-to-be-kept" > notes; git add -A; git commit -qm notes` + done, journal.PolicyBlocked},
		"a failing gate":   {work + `touch wrong` + done, journal.GateFailed},
		"clean checkout":   {`touch wrong; ` + work + `rm wrong` + done, journal.GateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			j := f.job(job.StrategyMerge)
			j.Run.Options.Command = []string{"sh", "-c", "cat >/dev/null; " + c.script}
			j.Run.MaxIterations, j.Run.Gate, j.Run.Secrets = 1, lines("test ! -e wrong"), redact.New("a-value-to-be-kept")
			if name == "it falls silent" {
				j.Run.Timers.Idle = 300 * time.Millisecond
			}
			res, err := j.Do(t.Context())
			if err != nil || res.Record.Verdict.Outcome != c.outcome || res.Merged != "" {
				t.Errorf("%+v, merged %q, %v", res.Record.Verdict, res.Merged, err)
			}
			if n := f.git(f.repo, "rev-list", "--count", "main"); n != "1" {
				t.Error("merged")
			}
		})
	}
}

// Jobs whose parts do not fit together are refused before anything starts.
func TestJobsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	for want, change := range map[job.StrategyProblem]func(*job.Job){
		job.StrategyUnknown:   func(j *job.Job) { j.Strategy = "x" },
		job.StrategyNoBranch:  func(j *job.Job) { j.Strategy = job.StrategyBranch },
		job.StrategyHasBranch: func(j *job.Job) { j.Branch = "x" },
		job.StrategyNeedsNone: func(j *job.Job) { j.Strategy, j.Run.Sandboxes = job.StrategyHead, newBindingProvider(nil) },
		job.StrategyCopy:      func(j *job.Job) { j.Strategy, j.Run.Copy = job.StrategyHead, []string{".env"} },
	} {
		j := f.job(job.StrategyMerge)
		change(&j)
		if _, err := j.Do(t.Context()); err == nil || !strings.Contains(err.Error(), string(want)) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if runs := f.runs(""); len(runs) != 0 {
		t.Errorf("runs were begun: %+v", runs)
	}
}

// A worktree with uncommitted changes is reused only on request.
func TestJobInADirtyWorktree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	j := f.job(job.StrategyBranch)
	j.Branch = "topic"
	res := do(t, j)
	if err := os.WriteFile(filepath.Join(res.Record.Tree, "draft"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := j.Do(t.Context())
	if err != nil || res.Record.Verdict.Outcome != journal.Failed || !strings.Contains(res.Record.Verdict.Reason.Detail, "uncommitted") {
		t.Errorf("%+v, %v", res, err)
	}
	j.AllowDirty = true
	if res := do(t, j); len(res.Commits) != 2 {
		t.Errorf("%+v", res)
	}
	if text, err := os.ReadFile(filepath.Join(res.Record.Tree, "draft")); err == nil && string(text) != "x" {
		t.Error("the draft was changed")
	}
}

// A later job on a kept branch finds the copied files of the first one, as its agent may have changed them: an isolated worktree
// gets them only before its first sandbox.
func TestCopyOnAReusedBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.Config.Run.Sandboxes = newBindingProvider(nil)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.repo, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := f.job(job.StrategyBranch)
	j.Branch, j.Run.Copy = "topic", []string{".env"}
	j.Run.Before = []string{"echo made >made"}
	write(".gitignore", ".env\nmade\n")
	f.git(f.repo, "add", ".gitignore")
	f.git(f.repo, "commit", "-qm", "Ignore")
	write(".env", "A=1")
	first := do(t, j).Record
	write(".env", "A=2")
	second := do(t, j).Record
	if second.Commits != 2 || second.Tree != first.Tree {
		t.Errorf("%d commits in %s, want 2 in %s", second.Commits, second.Tree, first.Tree)
	}
	for name, want := range map[string]string{".env": "A=1", "made": "made\n"} {
		if got, err := os.ReadFile(filepath.Join(second.Tree, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
