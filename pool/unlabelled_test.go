package pool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// An issue that loses its pick-up label during its run is superseded, even if its commits go no further than a local branch.
func TestUnlabelledMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; sed -i s/no-human/other/ "$FILE"`+done)
	f.issue("a")
	f.Config.Run.Env = append(f.Config.Run.Env, "FILE="+f.repo+"/.ralph/backlog/a.md")
	f.Config.Run.Publish = journal.PublishBranch
	if r := f.one(); r.Verdict.Outcome != journal.Superseded || r.Verdict.Reason.Unfit != (tracker.Unfit{Code: tracker.UnfitLacks, Detail: "no-human"}) || r.Commits != 1 {
		t.Errorf("%+v, %d commits", r.Verdict, r.Commits)
	}
	f.clean()
}

// A run looks at its issue at once when the backlog may have changed.
func TestUnlabelledIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.issue("a")
	f.Config.Run.Reconcile = time.Hour
	p := f.pool()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	f.onStarted(func(key string) {
		if err := f.Config.Run.Tracker.Change(ctx, key, tracker.Change{RemoveLabels: []string{"no-human"}}); err != nil {
			t.Error(err)
		}
		p.Wake()
	})
	s := f.sweepBy(ctx, p)
	if r := f.only(s); r.Verdict.Outcome != journal.Superseded {
		t.Errorf("%+v", r.Verdict)
	}
	f.clean()
}

// The report of a run that was stopped after its label was removed names the way back, and not a continuation by the next sweep.
func TestUnlabelledAndStopped(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(p *pool.Pool, end func()){
		"stopped":  func(p *pool.Pool, _ func()) { p.Stop("a") },
		"shutdown": func(_ *pool.Pool, end func()) { end() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, endless)
			f.issue("a")
			p := f.pool()
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			f.onStarted(func(key string) {
				if err := f.Config.Run.Tracker.Change(context.WithoutCancel(ctx), key, tracker.Change{RemoveLabels: []string{"no-human"}}); err != nil {
					t.Error(err)
				}
				stop(p, func() { end(nil) })
			})
			s := f.sweepBy(ctx, p)
			if r := f.only(s); r.Verdict.Outcome != journal.Interrupted {
				t.Errorf("%+v", r.Verdict)
			}
			if text := f.text("a"); !strings.Contains(text, "Next: nothing; ralph continues when the issue is given the label `no-human`.\n") {
				t.Errorf("the issue says:\n%s", text)
			}
			f.clean()
		})
	}
}
