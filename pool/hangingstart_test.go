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
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// A stop ends a sweep that waits for a remote that hangs, whatever it waits for, as long as no agent has begun. The next sweep
// works the issue.
func TestStopBeforeAnAgentWhileTheRemoteHangs(t *testing.T) {
	t.Parallel()
	for setting, program := range map[string]string{"uploadpack": "upload-pack", "receivepack": "receive-pack"} {
		for n := range 8 { // more than the connections to each before the agent
			t.Run(fmt.Sprint(program, " ", n+1), func(t *testing.T) {
				t.Parallel()
				if !stopBeforeAgent(t, setting, program, n+1) && n == 0 {
					t.Error("no connection has hung")
				}
			})
		}
	}
}

// stopBeforeAgent stops a sweep whose n-th connection to the remote hangs. It reports whether there was one before the agent.
func stopBeforeAgent(t *testing.T, setting, program string, n int) (hung bool) {
	t.Helper()
	f := newFixture(t, commits)
	f.withRemote()
	f.Config.Run.Publish = journal.PublishRequest
	f.Config.Run.Tracker = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	if setting == "uploadpack" { // a claim that cannot be released stays with this process until it expires
		f.issue("left")
		f.one()
		f.pretend("left", journal.StageRelease, nil)
	}
	f.issue("a")
	pipe := newPipe(t)
	early := f.hangs(setting, program, n, pipe)
	if err := os.WriteFile(early, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.onStage(journal.StageWork, func(journal.Record) { _ = os.Remove(early) })
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	pipe.then(func() { hung = true; stop(nil) })
	p, swept := f.pool(), make(chan pool.Summary, 1)
	go func() {
		s, err := p.Sweep(ctx)
		if err != nil {
			t.Error(err)
		}
		swept <- s
	}()
	var s pool.Summary
	select {
	case s = <-swept:
	case <-time.After(time.Minute):
		t.Errorf("connection %d to %s: the sweep goes on after it was stopped", n, program)
		p.Kill()
		s = <-swept
	}
	if s.Interrupted != hung || len(s.Broken) > 0 || hung && f.ended("a") == journal.Succeeded {
		t.Errorf("connection %d to %s: %+v", n, program, s)
	}
	_ = os.Remove(early)
	again := f.sweep(t.Context())
	if len(again.Broken) > 0 || f.ended("a") != journal.Succeeded || setting == "uploadpack" && f.ended("left") != journal.Succeeded {
		t.Errorf("connection %d to %s: then %+v", n, program, again)
	}
	f.clean()
	return hung
}

// ended returns the outcome of the issue's last run.
func (f *fixture) ended(key string) journal.Outcome {
	f.t.Helper()
	if runs := f.runs(key); len(runs) > 0 {
		return runs[len(runs)-1].Verdict.Outcome
	}
	return ""
}

// hangs makes the n-th connection to a program of the remote hang, and later ones, as long as the file exists.
func (f *fixture) hangs(setting, program string, n int, pipe pipe) (file string) {
	f.t.Helper()
	dir := f.t.TempDir()
	file = filepath.Join(dir, "hangs")
	script := filepath.Join(dir, program)
	text := fmt.Sprintf("#!/bin/sh\nif test -e '%s'; then echo >>'%[1]s'\nif test $(wc -l <'%[1]s') -ge %d; then echo >'%s'; exec sleep 1000; fi; fi\nexec git-%s \"$@\"\n",
		file, n, pipe.path, program)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		f.t.Fatal(err)
	}
	f.git(f.repo, "config", "remote.origin."+setting, script)
	return file
}

// A stop also ends the wait for the remote before the commits are checked: they are kept, and the next sweep checks them.
func TestStopWhileTheBaseIsFetchedForTheChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, strings.Replace(commits, "git commit", "git commit -m 'Fixes #1'", 1))
	f.withRemote()
	f.Config.Run.Publish = journal.PublishRequest
	f.Config.Run.Tracker = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.issue("a")
	pipe := newPipe(t)
	file := f.hangs("uploadpack", "upload-pack", 1, pipe)
	f.onStage(journal.StageVerify, func(journal.Record) {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	pipe.then(func() { stop(nil) })
	p := f.pool()
	late := time.AfterFunc(time.Minute, func() { t.Error("the sweep goes on after it was stopped"); p.Kill() })
	s, err := p.Sweep(ctx)
	late.Stop()
	if r := f.only(s); err != nil || !s.Interrupted || r.Stage != journal.StageVerify || !r.Ended.IsZero() || r.Commits == 0 {
		t.Errorf("stage %s, ended %v, %d commits, interrupted %v: %v", r.Stage, r.Ended, r.Commits, s.Interrupted, err)
	}
	_ = os.Remove(file)
	f.onStage(journal.StageVerify, nil)
	f.sweep(t.Context())
	if len(f.runs("a")) != 1 || f.ended("a") != journal.Succeeded {
		t.Errorf("%+v", f.runs("a"))
	}
	f.clean()
}

// If a stop keeps a dead holder's claim from being released, that is no problem: a later sweep releases it.
func TestStopWhileAStrayClaimIsReleased(t *testing.T) {
	t.Parallel()
	for setting, program := range map[string]string{"uploadpack": "upload-pack", "receivepack": "receive-pack"} {
		for n := range 4 {
			t.Run(fmt.Sprint(program, " ", n+1), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				f.withRemote()
				dead := f.git(f.repo, "commit-tree", "-m", `{"version":1,"nonce":"A","generation":1,"holder":{"owner":"x","run":"r","expires":"2020-01-01T00:00:00Z"}}`, "HEAD^{tree}")
				f.git(f.repo, "push", "-q", "origin", dead+":refs/ralph/claims/stray")
				pipe := newPipe(t)
				if err := os.WriteFile(f.hangs(setting, program, n+1, pipe), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				f.Config.Observe = func(e journal.Event) {
					if e.Kind == journal.EventProblem {
						t.Errorf("%+v", e.Skip)
					}
				}
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				pipe.then(func() { stop(nil) })
				if s, err := f.pool().Sweep(ctx); err != nil || len(s.Broken) > 0 {
					t.Errorf("%+v, %v", s.Broken, err)
				}
			})
		}
	}
}

// A stop ends merges that wait for the tracker.
func TestStopWhileMergesWaitForTheTracker(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	h := hangingTracker{f.Config.Run.Tracker, "get", make(chan struct{}, 100)}
	f.Config.Run.Tracker = h
	p := f.pool()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go func() { <-h.asked; stop(nil) }()
	late := time.AfterFunc(time.Minute, func() { t.Error("the merges go on after they were stopped"); p.Kill() })
	defer late.Stop()
	keys := []string{"a", "b"}
	for n, r := range p.MergeAll(ctx, keys) {
		if r.Err != nil || r.Issue.Key != keys[n] || r.Skip == nil || r.Skip.Code != journal.SkipStopped {
			t.Errorf("%+v", r)
		}
	}
}

// A stop ends merges that wait for the remote before the base moves, and the next call merges.
func TestStopWhileMergesWaitForTheRemote(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b"}
	for n := range keys {
		t.Run(fmt.Sprint("claim ", n+1), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.withRemote()
			f.branches("true", keys...)
			pipe := newPipe(t)
			file := f.hangs("receivepack", "receive-pack", n+1, pipe)
			f.Config.Observe = func(e journal.Event) {
				if e.Kind == journal.EventSweep && e.Text == "the gate runs on a and b together" {
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			pipe.then(func() { _ = os.Remove(file); stop(nil) })
			p := f.pool()
			late := time.AfterFunc(time.Minute, func() { t.Error("the merges go on after they were stopped"); p.Kill() })
			defer late.Stop()
			for _, r := range p.MergeAll(ctx, keys) {
				if r.Err != nil || r.Skip == nil || r.Skip.Code != journal.SkipStopped {
					t.Errorf("%+v", r)
				}
			}
			if on := f.on(keys...); on != "" {
				t.Errorf("main has %s", on)
			}
			f.Config.Observe = nil
			f.pool().MergeAll(t.Context(), keys)
			if on := f.on(keys...); on != "ab" {
				t.Errorf("then main has %s", on)
			}
			f.clean()
		})
	}
}

// Drain also ends the wait of a sweep for a remote that hangs, as long as no run has begun.
func TestDrainWhileTheRemoteHangs(t *testing.T) {
	t.Parallel()
	for setting, most := range map[string]int{"uploadpack": 3, "receivepack": 1} {
		for n := range most {
			for _, planned := range []bool{false, true} {
				t.Run(fmt.Sprint(setting, " ", n+1, planned), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, commits)
					f.withRemote()
					f.issue("a")
					pipe := newPipe(t)
					file := f.hangs(setting, map[string]string{"uploadpack": "upload-pack", "receivepack": "receive-pack"}[setting], n+1, pipe)
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Fatal(err)
					}
					f.onStage(journal.StagePrepare, func(journal.Record) { _ = os.Remove(file) })
					p := f.pool()
					hung := false
					pipe.then(func() { hung = true; p.Drain() })
					late := time.AfterFunc(time.Minute, func() { t.Error("it goes on after Drain"); p.Kill() })
					defer late.Stop()
					if planned {
						if r, err := p.WorkPlanned(t.Context(), "a", nil); errors.Is(err, pool.ErrEnded) != hung || setting == "receivepack" && !hung {
							t.Errorf("hung %v: %+v, %v", hung, r.Skip, err)
						}
					} else if s, err := p.Sweep(t.Context()); err != nil || !s.Interrupted || len(s.Runs)+len(s.Broken) > 0 {
						t.Errorf("%+v, %v", s, err)
					}
					_ = os.Remove(file)
					if f.sweep(t.Context()); f.ended("a") != journal.Succeeded {
						t.Error("the next sweep does not work the issue")
					}
				})
			}
		}
	}
}

// Each call for one issue reports a slow remote, too.
func TestSlowRemoteIsToldByEachCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.issue("a")
	var told []string
	end := func() {}
	f.Config.Observe = func(e journal.Event) {
		if e.Kind == journal.EventSweep {
			told = append(told, e.Text)
			end()
		}
	}
	if err := os.WriteFile(f.hangs("receivepack", "receive-pack", 1, newPipe(t)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := f.pool()
	p.TellAfter(time.Second)
	for n := 1; n <= 2; n++ {
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("nothing was told"))
		end = stop
		r, err := p.Work(ctx, "a")
		if stop(); err != nil || r.Skip == nil || len(told) != n || told[n-1] != "still claiming a on origin" {
			t.Fatalf("told %q: %+v, %v", told, r.Skip, err)
		}
	}
}

// A slow remote is reported once, with the reason of the wait.
func TestSlowRemoteIsTold(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "still reading the claims on origin", 2: "still fetching the base from origin", 4: "still fetching ralph/a from origin"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.withRemote()
			f.issue("a")
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var told atomic.Int32
			f.Config.Observe = func(e journal.Event) {
				if e.Kind == journal.EventSweep && e.Text == want {
					told.Add(1)
					stop(nil)
				}
			}
			if err := os.WriteFile(f.hangs("uploadpack", "upload-pack", n, newPipe(t)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p := f.pool()
			p.TellAfter(time.Second)
			if s, err := p.Sweep(ctx); err != nil || !s.Interrupted || told.Load() != 1 {
				t.Errorf("told %d times: %+v, %v", told.Load(), s, err)
			}
		})
	}
}

// A person's request to stop an issue also ends the wait for its claim, is reported, and leaves nothing that would stop a later
// run.
func TestStopWhileTheClaimHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.withRemote()
	f.Config.Run.StopGrace = time.Second
	f.issue("a")
	pipe := newPipe(t)
	file := f.hangs("receivepack", "receive-pack", 1, pipe)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := make(chan journal.Record, 1)
	pipe.then(func() {
		r := f.runs("a")[0]
		asked <- r
		if err := journal.RequestStop(r); err != nil {
			t.Error(err)
		}
	})
	p := f.pool()
	late := time.AfterFunc(time.Minute, func() { t.Error("the sweep goes on after the issue was stopped"); p.Kill() })
	s, err := p.Sweep(t.Context())
	late.Stop()
	if err != nil || skips(s)["a"] != journal.SkipAsked || s.Interrupted || s.Unavailable != nil || len(s.Runs)+len(s.Broken) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := os.Stat((<-asked).Dir); err == nil {
		t.Error("the run's folder stays")
	}
	_ = os.Remove(file)
	if f.sweep(t.Context()); f.ended("a") != journal.Succeeded {
		t.Error("the next sweep does not work the issue")
	}
	f.clean()
}
