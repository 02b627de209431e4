package pool_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Everything that ends a run before it begins also ends the wait for a tracker that does not answer the change of labels. The
// next sweep works the issue.
func TestStopWhileTheLabelHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end func(*fixture, *pool.Pool, context.CancelCauseFunc) error
		why journal.SkipCode
	}{
		"the sweep": {func(_ *fixture, _ *pool.Pool, stop context.CancelCauseFunc) error { stop(nil); return nil }, journal.SkipStopped},
		"drain":     {func(_ *fixture, p *pool.Pool, _ context.CancelCauseFunc) error { p.Drain(); return nil }, journal.SkipStopped},
		"request": {func(f *fixture, _ *pool.Pool, _ context.CancelCauseFunc) error {
			return journal.RequestStop(f.runs("a")[0])
		}, journal.SkipAsked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.Config.Run.StopGrace, f.Config.Run.Labels.Claimed = time.Second, "claimed"
			f.issue("a")
			usual := f.Config.Run.Tracker
			h := hangingTracker{usual, "change", make(chan struct{}, 100)}
			f.Config.Run.Tracker = h
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			p := f.pool()
			late := time.AfterFunc(time.Minute, func() { t.Error("the sweep goes on after it was stopped"); p.Kill() })
			asked := make(chan error, 1)
			go func() { <-h.asked; asked <- c.end(f, p, stop) }()
			s, err := p.Sweep(ctx)
			late.Stop()
			if err = errors.Join(err, <-asked); err != nil || skips(s)["a"] != c.why || s.Unavailable != nil || len(s.Runs)+len(s.Broken) > 0 {
				t.Errorf("%+v, %v", s, err)
			}
			f.Config.Run.Tracker = usual
			if f.sweep(t.Context()); f.ended("a") != journal.Succeeded {
				t.Error("the next sweep does not work the issue")
			}
			f.clean()
		})
	}
}

// mutedTracker makes a change of labels and never answers that.
type mutedTracker struct {
	tracker.Tracker

	stop func()
}

func (m mutedTracker) Change(ctx context.Context, key string, c tracker.Change) error {
	if err := m.Tracker.Change(ctx, key, c); err != nil {
		return err
	}
	m.stop()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A stop may cut off the change that sets the label Claimed after the tracker has made it. Recover removes the label.
func TestLabelOfACutChangeIsRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.StopGrace, f.Config.Run.Labels.Claimed = time.Second, "claimed"
	f.issue("a")
	usual := f.Config.Run.Tracker
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.Config.Run.Tracker = mutedTracker{usual, func() { stop(nil) }}
	if s := f.sweep(ctx); skips(s)["a"] != journal.SkipStopped || len(s.Runs)+len(s.Broken) > 0 {
		t.Errorf("%+v", s)
	}
	f.Config.Run.Tracker = usual
	if _, err := f.pool().Recover(t.Context()); err != nil || strings.Contains(f.labels("a"), "claimed") {
		t.Errorf("labels are %q, %v", f.labels("a"), err)
	}
	f.clean()
}

// With StopUnlabels a person's stop removes the pick-up label even before the run has begun. Other stops leave it.
func TestStopUnlabelsBeforeTheRun(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]bool{"a person": true, "the sweep": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.withRemote()
			f.Config.Run.StopGrace, f.Config.Run.StopUnlabels = time.Second, true
			f.issue("a")
			pipe := newPipe(t)
			if err := os.WriteFile(f.hangs("receivepack", "receive-pack", 1, pipe), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			p := f.pool()
			pipe.then(func() {
				if !person {
					stop(nil)
				} else if !p.Stop("a") {
					t.Error("nothing is stopped")
				}
			})
			s, err := p.Sweep(ctx)
			if err != nil || len(s.Runs) > 0 || strings.Contains(f.labels("a"), "no-human") == person {
				t.Errorf("%s: %+v, %v", f.labels("a"), s, err)
			}
		})
	}
}
