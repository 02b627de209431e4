package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// losing is a binding whose first agent gets no end: the engine fails it once it has committed.
type losing struct {
	binding
	err  error
	lost *atomic.Bool
}

func (l losing) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := l.binding.Open(ctx, spec)
	return losingBox{box, l}, err
}

type losingBox struct {
	sandboxes.Sandbox
	l losing
}

func (b losingBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	exit, err := b.Sandbox.Exec(ctx, cmd)
	if strings.Contains(strings.Join(cmd.Argv, " "), "git commit") && b.l.lost.CompareAndSwap(false, true) {
		return sandboxes.Exit{}, b.l.err
	}
	return exit, err
}

// An engine that goes away while an agent works, such as for an update, is no failure of the run. It is back by the time that the
// commits are imported, so the sweep goes on, and the next one works the issue again without a pause.
func TestEngineAwayDuringARun(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		err     error
		outcome journal.Outcome
		runs    int
	}{
		"away":   {fmt.Errorf("run sh: %w: %w", sandboxes.ErrAway, broken), journal.EnvironmentUnavailable, 1},
		"broken": {broken, journal.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.Config.Run.Sandboxes = losing{newBinding(nil), tt.err, new(atomic.Bool)}
			f.Config.Parallel = 1
			f.issue("a")
			f.issue("b")
			s := f.sweep(t.Context())
			if s.Unavailable != nil || len(s.Runs) != 2 {
				t.Fatalf("%d runs, %v", len(s.Runs), s.Unavailable)
			}
			first, second := s.Runs[0], s.Runs[1]
			if v := first.Verdict; v.Outcome != tt.outcome || v.Counted || v.Final || first.Commits != 1 || first.Tally().Failures != 1 {
				t.Errorf("%+v, %d commits, %d failures", v, first.Commits, first.Tally().Failures)
			}
			if second.Verdict.Outcome != journal.Succeeded {
				t.Errorf("the other issue: %+v", second.Verdict)
			}
			if s := f.sweep(t.Context()); len(s.Runs) != tt.runs {
				t.Errorf("the next sweep: %+v", s.Runs)
			}
		})
	}
}
