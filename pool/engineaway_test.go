package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// failingProvider is a bindingProvider whose first sandbox or command with certain words fails; a command fails only after its
// work, and if a file exists.
type failingProvider struct {
	bindingProvider
	words string
	file  string // empty: no file is needed
	err   error
	lost  *atomic.Bool
}

func (l failingProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if strings.Contains(spec.Run, l.words) && l.lost.CompareAndSwap(false, true) {
		return nil, l.err
	}
	box, err := l.bindingProvider.Open(ctx, spec)
	return failingBox{box, l}, err
}

type failingBox struct {
	sandboxes.Sandbox
	l failingProvider
}

func (b failingBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	exit, err := b.Sandbox.Exec(ctx, cmd)
	_, missing := os.Stat(b.l.file)
	if strings.Contains(strings.Join(cmd.Argv, " "), b.l.words) && (b.l.file == "" || missing == nil) && b.l.lost.CompareAndSwap(false, true) {
		return sandboxes.Exit{}, b.l.err
	}
	return exit, err
}

// If an engine goes away while an agent works, for example for an update, the run does not count as failed. The engine is back
// for the import of the commits, so the sweep continues, and the next one works the issue again without a pause.
func TestEngineAwayDuringARun(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		err     error
		outcome journal.Outcome
		runs    int
	}{
		"away":   {fmt.Errorf("run sh: %w: %w", sandboxes.ErrUnavailable, broken), journal.EnvironmentUnavailable, 1},
		"broken": {broken, journal.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.Config.Run.Sandboxes = failingProvider{newBindingProvider(nil), "git commit", "", tt.err, new(atomic.Bool)}
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

// If only the checks met the outage, the next run needs no agent.
func TestEngineAwayDuringTheGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo x >>"$AGENTS"; `+commits)
	agents := filepath.Join(t.TempDir(), "agents")
	f.Config.Run.Env = append(os.Environ(), "AGENTS="+agents)
	f.Config.Run.Gate = lines("true the gate")
	f.Config.Run.Sandboxes = failingProvider{newBindingProvider(nil), "true the gate", agents, fmt.Errorf("run sh: %w", sandboxes.ErrUnavailable), new(atomic.Bool)}
	f.issue("a")
	for i, want := range []journal.Outcome{journal.EnvironmentUnavailable, journal.Succeeded} {
		s := f.sweep(t.Context())
		if len(s.Runs) != 1 || s.Runs[0].Verdict.Outcome != want {
			t.Fatalf("sweep %d: %+v", i, s.Runs)
		}
	}
	if text, err := os.ReadFile(agents); err != nil || string(text) != "x\n" {
		t.Errorf("agents began: %q, %v", text, err)
	}
}

// If an engine goes away before or while the reviewer works, the reviewer has not failed: it reviews the change once the engine
// is back.
func TestEngineAwayDuringAReview(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("run sh: %w: broken", sandboxes.ErrUnavailable)
	for name, l := range map[string]failingProvider{
		"before": {words: "-review", err: errors.New("no daemon runs")},
		"while":  {words: ": review", err: away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, listens)
			f.withReviewer(`: review; `+yes, 2)
			l.bindingProvider, l.lost = newBindingProvider(nil), new(atomic.Bool)
			f.Config.Run.Sandboxes = l
			r := f.one()
			if v := r.Facts.Review; !l.lost.Load() || r.Verdict.Outcome != journal.Succeeded || v == nil || !v.Accepted || v.Round != 1 {
				t.Errorf("%v, %+v, %+v", l.lost.Load(), r.Verdict, v)
			}
			f.clean()
		})
	}
}
