package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
)

// A gate that cannot run on the base stops the sweep before any agent starts, and the issues get no report.
func TestGateThatCannotRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*run.Config)
		want string
	}{
		"missing program":        {func(c *run.Config) { c.Gate = lines("true", "no-such-program --x") }, "no-such-program"},
		"not executable":         {func(c *run.Config) { c.Gate = lines("./README") }, "./README"},
		"no end":                 {func(c *run.Config) { c.Gate = []loop.Command{{Line: "exec sleep 1000", Timeout: time.Millisecond}} }, "took longer than"},
		"setup fails":            {func(c *run.Config) { c.Gate, c.Setup = lines("true"), lines("echo no network; exit 1") }, "no network"},
		"missing target":         {func(c *run.Config) { c.Gate = lines(makes("'none'.  Stop.") + " none") }, "'none'"},
		"missing target, of old": {func(c *run.Config) { c.Gate = lines(makes("`none'.  Stop.") + " none") }, "`none'"},
		"no makefile": {func(c *run.Config) {
			c.Gate = lines(`make() { echo "make: *** No targets specified and no makefile found.  Stop."; return 2; }; make`)
		}, "no makefile"},
		"missing script": {func(c *run.Config) {
			c.Gate = lines(`npm() { echo 'npm error Missing script: "none"'; echo "npm error see npm run"; return 1; }; npm run none`)
		}, "npm"},
		"missing script, of pnpm": {func(c *run.Config) {
			c.Gate = lines(`pnpm() { echo ' ERR_PNPM_NO_SCRIPT  Missing script: none'; return 1; }; pnpm run none`)
		}, "Missing script"},
		"program is in no path": {func(c *run.Config) { c.Gate = lines("/no/such/program") }, "/no/such/program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.issue("b")
			before := f.text("a")
			c.set(&f.Config.Run)
			f.onStarted(func(key string) { t.Errorf("an agent works %s", key) })
			s := f.sweep(t.Context())
			if _, ok := errors.AsType[*workspace.BaselineError](s.Unavailable); !ok || !strings.Contains(s.Unavailable.Error(), c.want) {
				t.Errorf("%v", s.Unavailable)
			}
			for _, r := range s.Runs { // with a worker for each, both may meet it
				if r.Verdict.Outcome != journal.EnvironmentUnavailable || r.Verdict.Counted || !r.Verdict.RetryAt.IsZero() || r.Facts.Open == nil ||
					r.Facts.Open.Kind != journal.FaultBase || !strings.Contains(r.Verdict.Reason.Detail, c.want) && !strings.Contains(r.Verdict.Reason.Detail, "the log of") {
					t.Errorf("%+v, %+v", r.Verdict, r.Facts.Open)
				}
			}
			if len(s.Runs) == 0 || len(f.runs(s.Runs[0].Key)) != 1 {
				t.Errorf("%d runs, none on record", len(s.Runs))
			}
			if f.text("a") != before {
				t.Errorf("the issue says:\n%s", f.text("a"))
			}
			f.clean()
		})
	}
}

// makes is a make that finds no rule for a target.
func makes(target string) string {
	return `make() { cat <<'END'
make: *** No rule to make target ` + target + `
END
return 2; }; make`
}

// Targets that an existing target needs or calls may be missing because an agent has to add them.
func TestGateWhoseTargetExists(t *testing.T) {
	t.Parallel()
	for name, gate := range map[string]string{
		"lacks a file":     makes("'b.o', needed by 'all'.  Stop.") + " all b.o",
		"calls another":    `n=lost; make() { echo "make: *** No rule to make target '${n}-it'.  Stop."; return 2; }; make all`,
		"makes in another": `echo "make[1]: *** No rule to make target 'all'.  Stop."; false all`,
		"runs a script":    `n=te; echo "npm error Missing script: \"${n}st\""; false ci-test`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.Config.Run.Gate = lines(gate)
			if r := f.one(); r.Verdict.Outcome != journal.GateFailed {
				t.Errorf("%+v", r.Verdict)
			}
			f.clean()
		})
	}
}

// All runs that wait for a gate that cannot run get its result; it does not run for each.
func TestWaitingForAGateThatCannotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.issue("b")
	f.Config.Parallel = 2
	ran, waits := filepath.Join(t.TempDir(), "ran"), newPipe(t)
	defer waits.file.Close()
	f.Config.Run.Gate = lines("echo x >>" + ran + "; read x <" + waits.path + "; no-such-program")
	f.onEvent = func(e journal.Event) {
		doing, _ := report.Action(e) // the action in the live view
		if other := map[string]string{"a": "b", "b": "a"}[e.Key]; doing == "waits for the gate on main, which runs for "+other {
			if _, err := waits.file.WriteString("go\n"); err != nil {
				t.Error(err)
			}
		}
	}
	s := f.sweep(t.Context())
	if times, err := os.ReadFile(ran); err != nil || string(times) != "x\n" || len(s.Runs) != 2 {
		t.Errorf("for %d runs it ran %q, %v", len(s.Runs), times, err)
	}
	whole := 0 // the others name the run that has the output
	for _, r := range s.Runs {
		if detail := r.Verdict.Reason.Detail; strings.Contains(detail, "no-such-program") {
			whole++
		} else if detail != "gate cannot run on main, before any change; the log of a has its output" && detail != "gate cannot run on main, before any change; the log of b has its output" {
			t.Errorf("%s: %s", r.Key, detail)
		}
	}
	if whole != 1 || !strings.Contains(s.Unavailable.Error(), "no-such-program") {
		t.Errorf("%d of them say it whole, and the sweep %v", whole, s.Unavailable)
	}
	f.clean()
}

// lateTracker answers for the issue b only after a signal.
type lateTracker struct {
	tracker.Tracker

	answer <-chan struct{}
}

func (l lateTracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if key == "b" {
		select {
		case <-l.answer:
		case <-ctx.Done():
		}
	}
	return l.Tracker.Get(ctx, key)
}

// A run that began before the gate could not run, and comes to it afterwards, gets that result, too.
func TestLateForAGateThatCannotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.issue("b")
	f.Config.Parallel = 2
	ran, first := filepath.Join(t.TempDir(), "ran"), make(chan struct{})
	f.Config.Run.Gate = lines("echo x >>" + ran + "; no-such-program")
	f.Config.Run.Tracker = lateTracker{f.Config.Run.Tracker, first}
	f.onEvent = func(e journal.Event) {
		if e.Kind == journal.EventEnded && e.Key == "a" {
			close(first)
		}
	}
	s := f.sweep(t.Context())
	if times, err := os.ReadFile(ran); err != nil || string(times) != "x\n" || len(s.Runs) != 2 {
		t.Errorf("for %d runs it ran %q, %v", len(s.Runs), times, err)
	}
	f.clean()
}

// A run that ended before any agent could start does not hide what the next run takes from earlier ones.
func TestGateThatCannotRunHidesNoEarlierRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent   string
		before, after func(f *fixture)
		same          func(first, r journal.Record) bool
	}{
		{"commits to publish", commits, func(f *fixture) {
			f.Config.Run.Publish = journal.PublishMerge
			f.write("a.txt", "not committed")
			f.one()
			f.sweep(f.t.Context())
		}, func(f *fixture) {
			if err := os.Remove(filepath.Join(f.repo, "a.txt")); err != nil {
				f.t.Fatal(err)
			}
		}, func(_, r journal.Record) bool {
			return r.Verdict.Outcome == journal.Succeeded && len(r.Facts.Iterations) == 0
		}},
		{"refused commits", evil + "git commit -qm evil" + done, func(f *fixture) {
			f.Config.Run.Protected = publish.ProtectedPaths()
		}, func(*fixture) {}, func(first, r journal.Record) bool { return first.Tip != "" && r.ExcludedCommit == first.Tip }},
		{"what the agent is told", `p=$(cat); case $p in *"ended: no-change"*) exit 1;; esac; echo "<no-change>no need</no-change>"` + done,
			func(f *fixture) { f.Config.Run.MaxIterations = 1 }, func(*fixture) {}, func(_, r journal.Record) bool { return r.Verdict.Outcome == journal.Failed }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.agent)
			f.issue("a")
			c.before(f)
			first := f.one()
			if !first.Verdict.Final {
				t.Fatalf("%+v", first.Verdict)
			}
			c.after(f)
			f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), ", needs-human", "", 1))
			f.Config.Run.Gate = lines("no-such-program")
			if r := f.one(); r.Verdict.Outcome != journal.EnvironmentUnavailable {
				t.Fatalf("%+v", r.Verdict)
			}
			f.Config.Run.Gate = lines("true")
			if r := f.one(); !c.same(first, r) {
				t.Errorf("%+v without %q, after %d iterations", r.Verdict, r.ExcludedCommit, len(r.Facts.Iterations))
			}
		})
	}
}

// A gate that fails on the base is reported to the agent and to people. It runs there once for all issues and sweeps.
func TestGateThatFailsOnTheBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat > "$GO/$RALPH_ISSUE_KEY"; echo work > fixed; git add -A; git commit -qm work`+done)
	prompts, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	f.Config.Run.Env = append(os.Environ(), "GO="+prompts)
	f.Config.Run.Gate = lines(`test -f fixed || { echo "fixed is missing"; echo x >> ` + ran + `; exit 1; }`)
	f.issue("a")
	f.issue("b")
	for _, key := range []string{"a", "b"} {
		r := f.one(key)
		if r.Verdict.Outcome != journal.Succeeded || r.Facts.Baseline == nil || r.Facts.Baseline.Passed() {
			t.Errorf("%+v, baseline %+v", r.Verdict, r.Facts.Baseline)
		}
		prompt, err := os.ReadFile(filepath.Join(prompts, key))
		if err != nil || !strings.Contains(string(prompt), "already failed on main") || !strings.Contains(string(prompt), "fixed is missing") {
			t.Errorf("%v; prompt:\n%s", err, prompt)
		}
		before, warned := true, 0
		err = journal.ReadEvents(r.Dir, func(e journal.Event) error {
			if before = before && e.Kind != journal.EventStarted; before && e.Kind == journal.EventWarning &&
				strings.HasSuffix(e.Text, " fails on main already (fixed is missing); with the commits it has to pass") {
				warned++
			}
			return nil
		})
		if err != nil || warned != 1 {
			t.Errorf("%s: %v, warned %d times before its start", key, err, warned)
		}
		if text := f.text(key); !strings.Contains(text, "Before the run") {
			t.Errorf("report:\n%s", text)
		}
	}
	if times, err := os.ReadFile(ran); err != nil || string(times) != "x\n" {
		t.Errorf("it ran on the base %q, %v", times, err)
	}
	f.clean()
}

// If the gate fails as on the base after two iterations with new commits, a person gets the issue. If an agent's work changes the
// failure, the run continues.
func TestGateThatNoWorkChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gate       string
		outcome    journal.Outcome
		iterations int
	}{
		"never passes":     {`echo "$PWD/x: unknown target after 0.$$s"; exit 2`, journal.GateFailed, 2},
		"says how far":     {`wc -l a.txt; test "$(wc -l <a.txt)" = 4`, journal.Succeeded, 4},
		"fails in another": {`echo no; test "$(git rev-list --count HEAD)" -gt 2`, journal.Succeeded, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.Config.Run.Gate, f.Config.Run.MaxIterations = lines(c.gate), 5
			r := f.one()
			if r.Verdict.Outcome != c.outcome || !r.Verdict.Final || len(r.Facts.Iterations) != c.iterations {
				t.Errorf("%+v after %d iterations", r.Verdict, len(r.Facts.Iterations))
			}
			if failed := c.outcome == journal.GateFailed; failed != strings.Contains(f.text("a"), "needs-human") {
				t.Errorf("the issue says:\n%s", f.text("a"))
			}
			f.clean()
		})
	}
}

// Ctrl-C ends a gate that runs on the base, and leaves nothing behind.
func TestStopDuringTheBaseline(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	begun := newPipe(t)
	f.Config.Run.Gate = lines(`echo > ` + begun.path + `; exec sleep 1000`)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	begun.then(func() { stop(nil) })
	s := f.sweep(ctx)
	if r := f.only(s); !s.Interrupted || s.Unavailable != nil || r.Verdict.Outcome != journal.Interrupted || r.Facts.StoppedStage != journal.StageBaseline {
		t.Errorf("%+v", s)
	}
	f.clean()
}

// While the gate runs on the base, its run can be looked at and stopped, and so can a run that waits for the result.
func TestRunsDuringTheBaseline(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.issue("b")
	f.Config.Parallel = 2
	begun := newPipe(t)
	f.Config.Run.Setup = lines("echo setting up")
	f.Config.Run.Gate = lines(`echo > ` + begun.path + `; exec sleep 1000`)
	stop := func(key string) {
		r := f.runs(key)[0]
		if r.Stage != journal.StageBaseline || r.Base != "main" || r.PID == 0 {
			t.Errorf("%s is at %s on %q", key, r.Stage, r.Base)
		}
		if err := journal.RequestStop(r); err != nil {
			t.Error(err)
		}
	}
	var mu sync.Mutex
	both, ready := map[string]bool{}, make(chan struct{})
	f.onStage(journal.StageBaseline, func(r journal.Record) {
		mu.Lock()
		defer mu.Unlock()
		if both[r.Key] = true; len(both) == 2 {
			close(ready)
		}
	})
	begun.then(func() {
		<-ready
		stop("a")
		stop("b")
	})
	s := f.sweep(t.Context())
	if len(s.Runs) != 2 || s.Unavailable != nil {
		t.Fatalf("%+v", s)
	}
	logged := 0
	for _, r := range s.Runs {
		if r.Verdict.Reason.Code != journal.ReasonAsked || r.Facts.StoppedStage != journal.StageBaseline {
			t.Errorf("%s ended %+v at %s", r.Key, r.Verdict, r.Facts.StoppedStage)
		}
		err := journal.ReadEvents(r.Dir, func(e journal.Event) error {
			if e.Kind == journal.EventStarted {
				t.Errorf("%s has started", r.Key)
			}
			if e.Kind == journal.EventSetup && e.Place == journal.PlaceBase && e.Check != nil && strings.Contains(e.Check.Tail, "setting up") {
				logged++
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(r.Dir, "baseline-setup-0-1.log")); err == nil && strings.Contains(string(text), "setting up") {
			logged++
		}
	}
	if logged != 2 {
		t.Errorf("the setup's output is in %d of one event and one file", logged)
	}
	f.clean()
}

// The issue is read again after the gate on the base, before an agent is paid.
func TestIssueThatChangesDuringTheBaseline(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"closed": "labels: [no-human]\nstate: closed\n", "unlabelled": "labels: [other]\n", "handed over": "labels: [no-human, needs-human]\n",
		"blocked": "labels: [no-human]\nblocked_by: [z]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.issue("z", "labels: [other]")
			now := filepath.Join(t.TempDir(), "now")
			if err := os.WriteFile(now, []byte("---\ntitle: Do a\n"+change+"---\nPlease do a.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f.Config.Run.Gate = lines("cp " + now + " " + filepath.Join(f.repo, ".ralph", "backlog", "a.md"))
			f.onStage(journal.StageWork, func(r journal.Record) {
				if r.Facts.StoppedStage == "" {
					t.Error("the agent was started")
				}
			})
			r := f.one()
			if r.Verdict.Outcome != journal.Superseded || r.Facts.StoppedStage != journal.StageBaseline {
				t.Errorf("%+v at %s", r.Verdict, r.Facts.StoppedStage)
			}
			f.clean()
		})
	}
}
