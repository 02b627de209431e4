// Package retest runs the tests of a change without the change: new and changed tests have to fail on the commit that was
// changed, and to pass on the tip. Tests that pass on both prove nothing about the change.
//
// The tests are added to the tree of the base, without other files of the change, and run there by the commands of
// [suite.RerunOf]. Everything runs like the gate: on clean checkouts, in new sandboxes, without an agent. If no test is new or
// changed, the gate itself takes their place. The output of the tests is hostile.
//
// Package pool/run uses it once the gate has passed. It collects facts for decide.Verdict, and feedback for the next iteration;
// it decides no outcome.
package retest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Tester runs tests. It is safe for concurrent use.
type Tester struct{ Spaces *workspace.Config }

// Work describes the run whose tests are run.
type Work struct {
	Run      journal.Run
	Base     string             // commit that the work is based on
	Checkout workspace.Checkout // of the tip, for the gate
	Notify   func(string)       // called before each run of tests
	Save     func()             // stores the state
	// Setup receives the events of setup's commands. Events of the tests are left out: on the base they must fail.
	Setup func(e loop.Event, at journal.Place)
}

// setupObserver returns an observer that passes on the events of setup at a place.
func (w Work) setupObserver(at journal.Place) func(loop.Event) {
	return func(e loop.Event) {
		if e.Kind == loop.EventSetup {
			w.Setup(e, at)
		}
	}
}

// Test checks that the change's tests fail without it and pass with it, if the settings ask for that and it has not been done. It
// notes the result in the facts. advice is feedback for the run's agent; empty: nothing is demanded. err means that the run was
// asked to end meanwhile, that no sandbox opened, or that git failed.
func (t *Tester) Test(ctx context.Context, w Work, s *journal.State) (advice string, err error) {
	must := w.Run.Settings.Checks
	if !must.Retest.On() || w.Run.Kind != journal.KindIssue || w.Run.Settings.Attended || s.Commits == 0 || s.Facts.Unchanged {
		return "", nil
	}
	next, err := t.identify(ctx, w.Base, s.Tip)
	if err != nil {
		return "", err
	}
	if last := s.Facts.Retest; last != nil && last.Base == next.Base && last.Tree == next.Tree {
		same := *last
		same.Tip = s.Tip
		next = &same
	} else {
		s.Facts.Retest, next.Required = nil, must.Retest == journal.RetestRequire
		if err := t.fillIn(ctx, w, *s, next); err != nil {
			return "", fmt.Errorf("tests of the change: %w", err)
		}
		w.Notify("tests of the change: " + report.Retest(next))
	}
	s.Facts.Retest = next
	w.Save()
	if !next.Refused() || next.NotStarted() { // no agent can make a missing program run
		return "", nil
	}
	return t.Spaces.Secrets.Clean(adviceOn(next, w.Checkout.Base.Name)), nil
}

// identify returns a result that names what is tested.
func (t *Tester) identify(ctx context.Context, base, tip string) (*journal.Retest, error) {
	g, r := t.Spaces.Repo.Git(), &journal.Retest{Tip: tip}
	fork, err := t.Spaces.Repo.Spans().Fork(ctx, base, tip)
	if err != nil {
		return nil, fmt.Errorf("compare with the base: %w", err)
	}
	tree, err := g.Output(ctx, "rev-parse", "--verify", "--end-of-options", tip+"^{tree}")
	r.Base, r.Tree = fork, strings.TrimSpace(tree)
	return r, err
}

// fillIn fills in the result.
func (t *Tester) fillIn(ctx context.Context, w Work, s journal.State, r *journal.Retest) error {
	g, must := t.Spaces.Repo.Git(), w.Run.Settings.Checks
	c, err := read(ctx, g, r.Base, r.Tip)
	if err != nil {
		return err
	}
	c.helpers = helpers(s.Facts.Watch)
	p := c.plan(suite.Lines{Gate: texts(must.Gate), Setup: texts(must.Setup)}, must.RetestCommand)
	switch {
	case p.whyExempt != "":
		r.Exempt, r.Why = true, p.whyExempt
	case p.whyNot != "":
		r.Why = p.whyNot
	case len(p.runs) == 0:
		r.Why = p.note
		return t.runGate(ctx, w, s.Facts, p, r)
	default:
		return t.runTests(ctx, w, p, r)
	}
	return nil
}

func texts(commands []loop.Command) (lines []string) {
	for _, c := range commands {
		lines = append(lines, c.Line)
	}
	return lines
}

// runTests runs the tests of the change on the base and, unless all have passed there, on the tip.
func (t *Tester) runTests(ctx context.Context, w Work, p plan, r *journal.Retest) error {
	commit, err := diff.Commit(ctx, t.Spaces.Repo.Git(), r.Base, p.edits, "The tests of the change, without the change\n")
	if err != nil {
		return err
	}
	w.Notify("the tests of the change run on the base, where they must fail")
	base, failed, err := t.run(ctx, w, journal.PlaceBase, commit, p.runs)
	if err != nil || failed != "" {
		r.Why = failed
		return err
	}
	for i, c := range p.runs {
		r.Runs = append(r.Runs, journal.Rerun{Command: c.Line, Files: c.files, Base: base[i]})
	}
	if slices.ContainsFunc(base, func(r journal.TestRun) bool { return r.Failed() || r.Outcome == journal.TestsNotStarted }) {
		w.Notify("the tests of the change run on the tip, where they must pass")
		tip, failed, err := t.run(ctx, w, journal.PlaceCheckout, r.Tip, p.runs)
		if err != nil || failed != "" {
			r.Why = failed
			return err
		}
		for i := range r.Runs {
			one := &r.Runs[i]
			if one.Tip = &tip[i]; one.Base.Outcome == journal.TestsNotStarted && tip[i].Outcome != journal.TestsNotStarted {
				one.Base.Outcome = journal.TestsNotBuilt // the change brings what runs its tests
			}
		}
	}
	r.Proved, r.Why = conclude(r.Runs)
	return nil
}

// run runs the commands on a clean checkout of a commit. failed has the reason if its setup did not pass.
func (t *Tester) run(ctx context.Context, w Work, at journal.Place, commit string, runs []command) (list []journal.TestRun, failed string, err error) {
	o, place := w.Checkout, "base"
	if at == journal.PlaceCheckout {
		place = "tip"
	}
	log := "retest-" + place + "-" + git.Short(commit) + "-"
	o.Name, o.Base.Commit, o.Each, o.Observe, o.Checks.Gate = "retest", commit, true, w.setupObserver(at), nil
	o.Stream = func(name string) (io.WriteCloser, error) { return w.Checkout.Stream(log + name) }
	for _, c := range runs {
		o.Checks.Gate = append(o.Checks.Gate, loop.Command{Line: c.Line, Timeout: w.timeout()})
	}
	got, err := t.Spaces.Check(ctx, o)
	if err != nil {
		return nil, "", err
	}
	if got.Setup {
		return nil, fmt.Sprintf("setup fails on the %s: %s", place, got.Checks[len(got.Checks)-1].Command), nil
	}
	for i, check := range got.Checks {
		one := ran(runs[i].howItEnded(check), check, log+loop.GateLog(0, i))
		if one.Outcome == journal.TestsNotStarted || commit == w.tip() && one.Outcome != journal.TestsPassed { // the agent has to know
			one.Tail = report.LastBytes(runs[i].upToReason(check.Tail), tailKept)
		}
		list = append(list, one)
	}
	return list, "", nil
}

// tailKept is the number of bytes kept of the tests' output. The log has all of it.
const tailKept = 1200

func (w Work) tip() string { return w.Checkout.Base.Commit }

// timeout returns the longest timeout of the gate's lines.
func (w Work) timeout() (most time.Duration) {
	for _, line := range w.Run.Settings.Checks.Gate {
		most = max(most, line.Timeout)
	}
	return most
}

func ran(how journal.TestOutcome, c loop.Check, log string) journal.TestRun {
	return journal.TestRun{Outcome: how, ExitCode: c.ExitCode, Duration: c.Duration, Log: log}
}

// runGate lets the gate decide if no test is new or changed: with the tests' changed data of the tip, if any, it must fail on the
// base. Its pass on the tip counts only if the change leaves alone everything else that the gate depends on.
func (t *Tester) runGate(ctx context.Context, w Work, f journal.Facts, p plan, r *journal.Retest) error {
	if f.Verify == nil || f.Verify.Tip != r.Tip || !f.Verify.Passed() || !onlyTests(f.Watch) {
		return nil
	}
	before := f.Baseline
	already := len(p.edits) == 0 || before != nil && before.Tip == r.Base && !before.Passed()
	if before == nil || before.Tip != r.Base || len(p.edits) > 0 {
		commit := r.Base
		if len(p.edits) > 0 {
			var err error
			if commit, err = diff.Commit(ctx, t.Spaces.Repo.Git(), r.Base, p.edits,
				"The tests of the change, without the change\n"); err != nil {
				return err
			}
		}
		w.Notify("the gate runs on the base: the change adds no test")
		o := w.Checkout
		o.Name, o.Base.Commit, o.Observe = "retest", commit, w.setupObserver(journal.PlaceBase)
		o.Stream = func(name string) (io.WriteCloser, error) {
			return w.Checkout.Stream("retest-gate-" + git.Short(commit) + "-" + name)
		}
		got, err := t.Spaces.Check(ctx, o)
		if err != nil {
			return err
		}
		before = &journal.Verification{Checks: got.Checks, Setup: got.Setup}
	}
	if before.Setup || before.Passed() || len(f.Verify.Checks) < len(before.Checks) {
		return nil
	}
	i := len(before.Checks) - 1
	c := command{}
	run := journal.Rerun{Command: before.Checks[i].Command, Base: ran(c.howItEnded(before.Checks[i]), before.Checks[i], "")}
	tip := ran(c.howItEnded(f.Verify.Checks[i]), f.Verify.Checks[i], loop.GateLog(0, i))
	run.Tip, r.Runs = &tip, []journal.Rerun{run}
	r.Proved = run.Proves()
	r.Already = already && r.Proved
	return nil
}

// onlyTests reports whether tests are the only files of the gate that the change touches. A helper of tests may contain code,
// too.
func onlyTests(w *journal.Watch) bool {
	return w != nil && w.UnlistedFiles+len(w.Findings) == 0 &&
		!slices.ContainsFunc(w.Files, func(f journal.Watched) bool { return !f.Test || f.Helper })
}

// conclude returns whether the runs prove the change, and otherwise why not.
func conclude(runs []journal.Rerun) (proved bool, why string) {
	var reasons []string
	for _, r := range runs {
		if text := flaw(r); text != "" {
			reasons = append(reasons, text)
		}
	}
	switch len(reasons) {
	case 0:
		return true, ""
	case 1, 2, 3:
		return false, strings.Join(reasons, "; ")
	}
	return false, fmt.Sprintf("%s; and %d more", strings.Join(reasons[:3], "; "), len(reasons)-3)
}

// flaw returns why a run proves nothing; empty: it proves the change.
func flaw(r journal.Rerun) string {
	what := strings.Join(r.Files[:min(3, len(r.Files))], ", ")
	for _, run := range []*journal.TestRun{&r.Base, r.Tip} {
		if run != nil && run.Outcome == journal.TestsNotStarted {
			return fmt.Sprintf("%s: %s", r.Command, notStarted(*run))
		}
	}
	switch {
	case r.Base.Outcome == journal.TestsPassed:
		return what + " passes without the change"
	case r.Base.Outcome == journal.TestsNone:
		return "no test of " + what + " runs without the change"
	case r.Proves():
		return ""
	case r.Tip != nil && r.Tip.Outcome == journal.TestsNone:
		return "no test of " + what + " runs with the change"
	case r.Tip != nil && r.Tip.Outcome == journal.TestsTimedOut:
		return what + " does not end in time with the change"
	}
	return what + " fails with the change, too"
}

// notStarted says why tests could not run: with the last line of the output, or else the exit status.
func notStarted(r journal.TestRun) string {
	lines := strings.Split(strings.TrimSpace(r.Tail), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), fmt.Sprintf("exit status %d", r.ExitCode))
}
