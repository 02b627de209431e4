package pool_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
)

// untested is an honest agent that begins without a test of its change, and adds one when it is told to.
const untested = `cat > "$NOTES/told.$RALPH_ITERATION"; if [ $RALPH_ITERATION = 1 ]; then ` + right + ` ; else true` + newTests + `; fi; git add -A; git commit -qm work` + done

// retesting makes the fixture's repository a Go project whose gate does not notice its wrong function.
func (f *fixture) retesting(p journal.Retesting) (notes string) {
	f.t.Helper()
	f.project()
	f.write("sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif Sum(0, 0) != 0 {\n\t\tt.Error(\"0 + 0\")\n\t}\n}\n")
	f.commit("fewer tests")
	notes = f.t.TempDir()
	f.Config.Run.Env = append(f.Config.Run.Env, "NOTES="+notes)
	f.Config.Run.Gate, f.Config.Run.Retest, f.Config.Run.MaxIterations = lines("go test ./..."), p, 3
	f.issue("a")
	return notes
}

// retestEvents returns the lines of a run's log about its retest: notes about tests of the change, and the setup that follows one.
func retestEvents(t *testing.T, r journal.Record) (lines []string) {
	t.Helper()
	on := false
	for line := range strings.Lines(note(t, r.Dir, "events.jsonl")) {
		var e journal.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == journal.EventNote:
			if on = strings.Contains(e.Text, "the change"); on {
				lines = append(lines, e.Text)
			}
		case e.Kind == journal.EventSetup && e.Check != nil && on && !strings.HasPrefix(lines[len(lines)-1], "tests of"):
			lines = append(lines, fmt.Sprintf("setup %s on %s", e.Check.Command, e.Place))
		}
	}
	return lines
}

// If a retest is required, a change without a test is not done: the agent is told, and adds a test that fails without the change.
func TestProofIsRequired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, untested)
	notes := f.retesting(journal.RetestRequire)
	f.Config.Run.Publish, f.Config.Run.Setup = journal.PublishMerge, lines("echo setting up")
	r := f.one()
	v := r.Facts.Retest
	if r.Verdict.Outcome != journal.Succeeded || v == nil || !v.Proved || v.Tip != r.Tip || len(v.Runs) != 1 || len(r.Facts.Iterations) != 2 {
		t.Fatalf("%+v, %+v", r.Verdict, v)
	}
	if got, want := retestEvents(t, r), []string{
		"tests of the change: none shows what the change does, because it neither adds nor changes a test",
		"the tests of the change run on the base, where they must fail", "setup echo setting up on base",
		"the tests of the change run on the tip, where they must pass", "setup echo setting up on checkout",
		"tests of the change: they fail without it and pass with it",
	}; !slices.Equal(got, want) {
		t.Errorf("events %q", got)
	}
	if got := v.Runs[0]; got.Base.Outcome != journal.TestsFailed || got.Tip.Outcome != journal.TestsPassed || got.Files[0] != "new_test.go" ||
		!strings.Contains(note(t, r.Dir, got.Base.Log), "--- FAIL: TestNew") || !strings.HasPrefix(note(t, r.Dir, got.Tip.Log), "ok") {
		t.Errorf("%+v", got)
	} else if setup := strings.Replace(got.Tip.Log, "gate-", "setup-", 1); !strings.HasPrefix(note(t, r.Dir, setup), "setting up\n") {
		t.Errorf("%s is not the setup's", setup)
	}
	if gate := note(t, r.Dir, "gate-0-1.log"); strings.Contains(gate, "setting up") || !strings.HasPrefix(note(t, r.Dir, "setup-0-1.log"), "setting up\n") {
		t.Errorf("the logs of setup and gate are one:\n%s", gate)
	}
	if told := note(t, notes, "told.2"); !strings.Contains(told, "no test shows what your change does") || !strings.Contains(told, "~~~~\nit neither adds nor changes a test\n~~~~") {
		t.Errorf("the agent is told:\n%s", told)
	}
	if text := f.text("a"); !strings.Contains(text, "Tests of the change: they fail without it and pass with it.\n\n- `go test -count=1 -run '^(TestNew)$' .`: without the change failed with exit status 1, with it passed\n") {
		t.Errorf("report:\n%s", text)
	}
	f.clean()
}

// With RetestReport nothing else changes; with RetestOff nothing runs.
func TestProofIsReported(t *testing.T) {
	t.Parallel()
	for _, p := range []journal.Retesting{journal.RetestReport, journal.RetestOff} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, untested)
			f.retesting(p)
			r := f.one()
			if r.Verdict.Outcome != journal.Succeeded || len(r.Facts.Iterations) != 1 || (r.Facts.Retest != nil) != (p == journal.RetestReport) {
				t.Errorf("%+v, %+v", r.Verdict, r.Facts.Retest)
			}
			if strings.Contains(f.text("a"), "Tests of the change: none shows what the change does, because it neither adds nor changes a test.") != (p == journal.RetestReport) {
				t.Errorf("report:\n%s", f.text("a"))
			}
		})
	}
}

// A gate that failed before the change shows less than a test of the change, and the report says so.
func TestGateThatFailedBefore(t *testing.T) {
	t.Parallel()
	const already, only = "the gate failed on the base already, and passes with the change", "the gate fails without the change and passes with it"
	for name, test := range map[string]struct{ change, gate, says string }{
		"no test":                 {"echo right >src.txt", "grep -q right src.txt", already},
		"data of tests":           {"mkdir testdata; echo right >testdata/in; echo right >src.txt", "grep -q right src.txt && grep -q right testdata/in", already},
		"data that it fails with": {"mkdir testdata; echo more >testdata/in; echo more >src.txt", "test ! -e testdata/in || grep -q more src.txt", only},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+test.change+`; git add -A; git commit -qm work`+done)
			f.shellProject()
			f.issue("a")
			f.Config.Run.Gate, f.Config.Run.Retest = lines(test.gate), journal.RetestReport
			if r := f.one(); r.Facts.Retest == nil || !r.Facts.Retest.Proved || !strings.Contains(f.text("a"), "Tests of the change: "+test.says) {
				t.Errorf("%+v\n%s", r.Facts.Retest, f.text("a"))
			}
		})
	}
}

// Tests that are never proved end the run like a failing check.
func TestProofIsNeverMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; `+right+`; sed 's/TestZero/TestAgain/' sum_test.go > new_test.go; git add -A; git commit -qm work; echo >> sum.go; git commit -qam more`+done)
	f.retesting(journal.RetestRequire)
	before := f.git(f.repo, "rev-parse", "main")
	f.Config.Run.Publish, f.Config.Run.Retry.MaxAttempts = journal.PublishMerge, 1
	r := f.one()
	if v := r.Verdict; v.Outcome != journal.GateFailed || v.Reason != (journal.Reason{Code: journal.ReasonUnproved, Detail: "new_test.go passes without the change"}) || !v.Final || !v.Counted {
		t.Errorf("%+v, %+v", v, r.Facts.Retest)
	}
	if f.git(f.repo, "rev-parse", "main") != before {
		t.Error("it is merged")
	}
	if text := f.text("a"); !strings.Contains(text, "**ralph: gate-failed**: `no test shows what the commits do: new_test.go passes without the change`") {
		t.Errorf("report:\n%s", text)
	}
}

// If the change brings what runs its tests, they cannot run without it, and that is no fault of the change.
func TestRetestWithARunnerOfTheChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; `+right+`; sed 's/TestZero/TestAgain/' sum_test.go > new_test.go; printf '#!/bin/sh\ngo test ./...\n' > run-tests; chmod +x run-tests; git add -A; git commit -qm work`+done)
	f.retesting(journal.RetestRequire)
	f.Config.Run.RetestCommand = "./run-tests"
	r := f.one()
	if v := r.Facts.Retest; r.Verdict.Outcome != journal.Succeeded || v == nil || !v.Proved || v.Runs[0].Base.Outcome != journal.TestsNotBuilt {
		t.Errorf("%+v, %+v", r.Verdict, v)
	}
}

// A command that cannot run the tests says nothing about them: no agent is asked to fix it, and a person learns the reason.
func TestRetestCannotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; `+right+`; sed 's/TestZero/TestAgain/' sum_test.go > new_test.go; git add -A; git commit -qm work`+done)
	f.retesting(journal.RetestRequire)
	f.Config.Run.RetestCommand, f.Config.Run.Hints.Retest = "no-such-program {files}", "set the command"
	f.Config.Run.Review = run.Reviewer{Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", reads + no}}, Rounds: 2}
	r := f.one()
	if v := r.Verdict; v.Outcome != journal.GateFailed || v.Reason.Code != journal.ReasonTestsNotRun || !v.Final || len(r.Facts.Iterations) != 1 || r.Facts.Review != nil {
		t.Errorf("%+v, %+v", v, r.Facts.Retest)
	}
	text := f.text("a")
	for _, want := range []string{"the tests of the change could not be run: no-such-program new_test.go: ", "no-such-program: ", "Next: set the command, then"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// A person's own command runs the tests of any language; a repository that ralph cannot read needs one.
func TestProofByOwnCommand(t *testing.T) {
	t.Parallel()
	for own, proved := range map[string]bool{"for t in {files}; do sh -e $t || exit 1; done": true, "no-such-program {files}": false, "": false} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo right > src.txt; mkdir tests; echo 'grep -q right src.txt' > tests/right.sh; git add -A; git commit -qm work`+done)
			f.shellProject()
			f.issue("a")
			f.Config.Run.Gate, f.Config.Run.Retest, f.Config.Run.RetestCommand = lines("true"), journal.RetestReport, own
			if r := f.one(); r.Facts.Retest == nil || r.Facts.Retest.Proved != proved {
				t.Errorf("%+v", r.Facts.Retest)
			}
		})
	}
	f := newFixture(t, "")
	f.Config.Run.Retest = "some"
	if _, err := run.New(f.Config.Run); err == nil || !strings.Contains(err.Error(), "Retest") {
		t.Errorf("%v", err)
	}
}

// A merge whose base has moved is proved again, on the new base.
func TestProofAfterARebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; `+right+newTests+`; git add -A; git commit -qm work`+done)
	f.retesting(journal.RetestRequire)
	f.Config.Run.Publish = journal.PublishMerge
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("other", "other\n")
		f.commit("meanwhile")
	})
	r := f.one()
	if v := r.Facts.Retest; r.Verdict.Outcome != journal.Succeeded || v == nil || !v.Proved || v.Tip != r.Tip || v.Base != f.git(f.repo, "rev-parse", "main~1") {
		t.Errorf("%+v, %+v", r.Verdict, v)
	}
	f.clean()
}

// A run that died before its retest, and whose worktree is gone, does not succeed by the gate alone.
func TestDeathBeforeTheProof(t *testing.T) {
	t.Parallel()
	f := newFixture(t, untested)
	f.retesting(journal.RetestOff)
	f.one()
	f.pretend("a", journal.StageVerify, func(r *journal.Record) { r.Settings.Checks.Retest = journal.RetestRequire })
	f.Config.Run.Retest = journal.RetestRequire
	f.issue("a") // still to be done
	f.sweep(t.Context())
	runs := f.runs("a")
	if len(runs) != 2 || runs[0].Verdict.Outcome != journal.Interrupted || runs[1].Verdict.Outcome != journal.Succeeded || !runs[1].Facts.Retest.Proved {
		t.Fatalf("%+v", runs)
	}
	f.clean()
}
