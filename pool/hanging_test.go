package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A remote that hangs while the commits are published does not keep ralph, or the run of one issue, from ending. The next sweep
// publishes them.
func TestStopWhileTheRemoteHangs(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*pool.Pool, journal.Record, context.CancelCauseFunc) error{
		"the sweep": func(_ *pool.Pool, _ journal.Record, stop context.CancelCauseFunc) error { stop(nil); return nil },
		"one issue": func(_ *pool.Pool, r journal.Record, _ context.CancelCauseFunc) error { return journal.RequestStop(r) },
		"drain":     func(p *pool.Pool, _ journal.Record, _ context.CancelCauseFunc) error { p.Drain(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopWhileTheRemoteHangs(t, name == "one issue", end)
		})
	}
}

// stopWhileTheRemoteHangs ends a run that publishes. one means that only this run is asked to end.
func stopWhileTheRemoteHangs(t *testing.T, one bool, end func(*pool.Pool, journal.Record, context.CancelCauseFunc) error) {
	t.Helper()
	for name, c := range map[string]struct{ setting, program, hang string }{
		"fetch":                 {"uploadpack", "upload-pack", `exec sleep 1000`},
		"push":                  {"receivepack", "receive-pack", `exec sleep 1000`},
		"push that has arrived": {"receivepack", "receive-pack", `git-receive-pack "$@" | { cat; exec sleep 1000; }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.withRemote()
			if name == "fetch" {
				f.withProof()
			}
			f.Config.Run.StopGrace, f.Config.Run.ShutdownWait = time.Second, time.Second
			dir := t.TempDir()
			hangs, hung, script := filepath.Join(dir, "hangs"), filepath.Join(dir, "hung"), filepath.Join(dir, c.program)
			text := "#!/bin/sh\nif test -e '" + hangs + "'; then echo x >>'" + hung + "'; " + c.hang + "; else\nexec git-" + c.program + " \"$@\"; fi\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			f.git(f.repo, "config", "remote.origin."+c.setting, script)
			f.issue("a")
			p := f.pool()
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			f.onStage(journal.StagePublish, func(r journal.Record) {
				if err := os.WriteFile(hangs, nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := end(p, r, stop); err != nil {
					t.Error(err)
				}
			})
			f.onEvent = func(e journal.Event) {
				if one && e.Kind == journal.EventDeferred {
					_ = os.Remove(hangs) // the sweep continues, and lists the backlog
				}
			}
			late := time.AfterFunc(time.Minute, func() { t.Error("it goes on after it was stopped"); p.Kill() })
			s, err := p.Sweep(ctx)
			late.Stop()
			f.onStage(journal.StagePublish, nil)
			r := f.only(s)
			if err != nil || r.Stage != journal.StagePublish || !r.Ended.IsZero() || r.Facts.StoppedStage != "" || s.Interrupted == one {
				t.Errorf("%+v, %v", s, err)
			}
			if one && (s.Unavailable != nil || len(s.Broken) > 0) { // the wait was too short to prove an outage
				t.Errorf("others are told: %v, %+v", s.Unavailable, s.Broken)
			}
			if _, err := os.Stat(filepath.Join(r.Dir, "stop")); err == nil {
				t.Error("the run that goes on would be stopped again")
			}
			if _, err := os.Stat(hung); err != nil {
				t.Error(err)
			}
			_ = os.Remove(hangs)
			f.sweep(t.Context())
			if runs := f.runs("a"); len(runs) != 1 || runs[0].Verdict.Outcome != journal.Succeeded || runs[0].Published == "" {
				t.Errorf("%+v", runs)
			}
			f.clean()
		})
	}
}
