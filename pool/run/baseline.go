package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/internal/retest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/internal/tree"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/worktree"
)

// needsBaseline reports whether setup and gate have to run on the base before this run starts.
func (x *execution) needsBaseline(ctx context.Context) bool {
	must := x.run.Settings.Checks
	return x.run.Kind == journal.KindIssue && x.task.Failed == nil && len(must.Gate) > 0 && must.Clean && !x.gateHasPassed(ctx)
}

// gateHasPassed reports, for a merge by a person, whether the gate has already passed on these commits under the same
// conditions. It reads only the journal, which no sandbox can write.
func (x *execution) gateHasPassed(ctx context.Context) bool {
	old := x.task.Unpublished
	if old == nil || !x.run.Settings.Attended || old.Verdict.Outcome != journal.Succeeded {
		return false
	}
	v := old.Verified
	return v == journal.Verified{Tip: old.Tip, Base: x.task.Base.Commit, Conditions: x.conditions(ctx), At: v.At} && time.Since(v.At) < workspace.ResultLife
}

// conditions returns a hash of everything that the result of a gate on a commit depends on.
func (x *execution) conditions(ctx context.Context) string {
	return x.r.spaces.Conditions(ctx, x.run.Settings.Checks, x.c.Canaries)
}

// baseline runs setup and gate on the base. If the gate fails there, the agent is told. If the gate cannot run, the run ends: it
// could not run for any other issue either.
func (x *execution) baseline(ctx context.Context, s journal.State) (journal.State, error) {
	if x.task.Base.Commit == "" {
		waiting, enough := x.stop.ForPreparing(ctx)
		x.task.Base, x.there, x.task.Failed = x.r.trees.Base(waiting, x.run.Branch)
		enough()
	}
	if x.task.Failed != nil {
		return s, nil //nolint:nilerr // Prepare reports it
	}
	x.addSecrets(ctx) // their output is stored
	took := false
	v, err := x.r.baselines.Get(ctx, workspace.Baseline{
		Run: x.run.ID, Key: x.run.Key, Since: x.run.Started, Base: x.task.Base, Checks: x.run.Settings.Checks, Asked: x.stop.Asked,
		Notify: func(kind journal.EventKind, text string) {
			took = true
			x.events.Emit(journal.Event{Kind: kind, Text: text})
		},
		Observe: func(e loop.Event) { x.events.Observe(e, journal.PlaceBase) },
		Stream:  func(name string) (io.WriteCloser, error) { return x.events.Stream("baseline-" + name) },
		Refused: x.events.Refused,
	})
	if took {
		x.there = nil // the branch may have moved meanwhile
	}
	if err == nil && took {
		x.refreshIssue(ctx)
	}
	switch {
	case x.stop.Stopped(ctx):
		return x.cut(ctx, s, journal.StageBaseline), nil
	case err != nil:
		x.result.Unavailable = workspace.BaselineErrorIn(err)
		if s.Facts.Open = tree.FaultOf(err, false); s.Facts.Open.Kind == journal.FaultOther {
			s.Facts.Open.Kind = journal.FaultBase
		}
		return s, nil
	}
	s.Facts.Baseline = v
	x.task.Feedback += feedback.Baseline(v)
	if !v.Passed() {
		failed, why := v.Checks[len(v.Checks)-1], ""
		if cause := workspace.Cause(failed.Tail); cause != "" {
			why = " (" + cause + ")"
		}
		x.events.Warn(fmt.Sprintf("%s fails on %s already%s; with the commits it has to pass", failed.Command, v.Base, why))
	}
	return s, nil
}

// checkout describes a clean checkout of a commit, for setup and gate.
func (x *execution) checkout(ctx context.Context, commit string) (workspace.Checkout, error) {
	err := x.makeHostFiles(ctx)
	base := x.base
	base.Commit = commit
	return workspace.Checkout{
		Run: x.run.ID, Name: "verify", Key: x.run.Key, Base: base, From: x.base.Commit, Checks: x.run.Settings.Checks, Made: x.hostFiles, Env: x.environment(),
		Asked: x.stop.Asked, Stream: x.events.Stream, Refused: x.events.Refused, Observe: func(e loop.Event) { x.events.Observe(e, journal.PlaceCheckout) },
	}, err
}

// runGate runs setup and gate on a clean checkout of the tip, and examines what the commits changed in the checks.
func (x *execution) runGate(ctx context.Context, s journal.State) (workspace.Checked, *journal.Watch, error) {
	at, err := x.checkout(ctx, s.Tip)
	if err != nil {
		return workspace.Checked{}, nil, err
	}
	examination := checks.Examination{Base: x.base.Commit, Plant: at.Checks.Plant, Own: x.c.Canaries, Notify: x.events.Note, Checkout: at}
	if before := s.Facts.Baseline; before != nil && before.Passed() {
		examination.Green = before.Tip
	}
	return x.r.watcher.Check(ctx, examination)
}

// retest runs the tests of the change with and without the change, if the configuration asks for that. advice is feedback for the
// agent.
func (x *execution) retest(ctx context.Context, s *journal.State) (advice string, err error) {
	if !x.run.Settings.Checks.Retest.On() || x.space.Tree == nil {
		return "", nil
	}
	at, err := x.checkout(ctx, s.Tip)
	if err != nil {
		return "", err
	}
	return x.r.retest.Test(ctx, retest.Work{
		Run: x.run, Base: x.base.Commit, Checkout: at, Notify: x.events.Note, Save: func() { _ = x.save(ctx, *s) }, Setup: x.events.Observe,
	}, s)
}

// readChecks examines what the commits changed in the checks and in host commands, unless a clean checkout will do that.
func (x *execution) readChecks(ctx context.Context, s journal.State, base worktree.Base) (journal.State, error) {
	c := x.run.Settings.Checks
	if len(c.Gate) > 0 && c.Clean || s.Verified.Tip == s.Tip {
		return s, nil
	}
	watch, err := x.r.watcher.Read(ctx, base.Commit, s.Tip, c)
	if s.Facts.Watch = watch; len(c.Gate) == 0 && !watch.Changed() {
		s.Facts.Watch = nil // nothing is known about checks
	}
	return s, err
}
