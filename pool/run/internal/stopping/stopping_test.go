package stopping

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Each way to stop a run ends the contexts of the steps that it affects, after the time that these have left.
func TestWhatEachStopEnds(t *testing.T) {
	t.Parallel()
	const grace, last, never = 20 * time.Second, 3 * time.Minute, time.Hour
	steps := map[string]func(*Stopping, context.Context) (context.Context, context.CancelFunc){
		"asked": (*Stopping).UntilAsked, "commands": (*Stopping).ForCommands, "urgent": (*Stopping).UntilUrgent,
		"remote": (*Stopping).ForRemote, "saving": func(_ *Stopping, ctx context.Context) (context.Context, context.CancelFunc) { return halt.Hurried(ctx) }, "leaving": (*Stopping).ForRelease,
	}
	for name, want := range map[string]map[string]time.Duration{
		"a person": {"asked": 0, "commands": grace, "urgent": never, "remote": grace, "saving": 2 * time.Minute, "leaving": grace},
		"soft":     {"asked": 0, "commands": grace, "urgent": never, "remote": grace, "saving": 2 * time.Minute, "leaving": 5 * time.Second},
		"drained":  {"asked": never, "commands": never, "urgent": never, "remote": last, "saving": 2 * time.Minute, "leaving": 2 * time.Minute},
		"urgent":   {"asked": never, "commands": 0, "urgent": 0, "remote": never, "saving": 2 * time.Minute, "leaving": 2 * time.Minute},
		"killed":   {"asked": 0, "commands": 0, "urgent": 0, "remote": 0, "saving": 2 * time.Minute, "leaving": 2 * time.Minute},
		"hard":     {"asked": 0, "commands": 0, "urgent": 0, "remote": 0, "saving": 10 * time.Second, "leaving": 10 * time.Second},
	} {
		for step, derive := range steps {
			synctest.Test(t, func(t *testing.T) {
				hard, end := context.WithCancelCause(t.Context())
				soft, ask := context.WithCancelCause(t.Context())
				urgent, hasten := context.WithCancelCause(t.Context())
				early, drain := context.WithCancelCause(t.Context())
				known, forget := halt.WithKill(hard, hard)
				defer forget()
				s, run, free := New(known, Config{StopContext: soft, KillContext: urgent, LastRuns: early, Grace: grace, ShutdownWait: last})
				ctx, cancel := derive(s, run)
				map[string]func(){
					"a person": func() { s.Stop(halt.Error(journal.StopAsked, "")) },
					"soft":     func() { ask(nil) },
					"drained":  func() { drain(nil) },
					"urgent":   func() { hasten(nil) },
					"killed":   func() { s.Kill(nil) },
					"hard":     func() { end(nil) },
				}[name]()
				start, took := time.Now(), never
				select {
				case <-ctx.Done():
					took = time.Since(start)
				case <-time.After(never):
				}
				if took != want[step] {
					t.Errorf("%s: %s ends after %s, want %s", name, step, took, want[step])
				}
				cancel()
				free()
				for _, f := range []context.CancelCauseFunc{end, ask, hasten, drain} {
					f(nil)
				}
			})
		}
	}
}
