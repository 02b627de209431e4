package pool_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
)

// keyed is an agent whose login is asked for, and can be away.
type keyed struct {
	agents.Command
	login func() error
}

func (k keyed) Service(agents.User) (agents.Service, error) { return agents.Service{}, k.login() }
func (keyed) Point(agents.Service, string, string) (env, args []string) {
	return nil, nil
}

// walled is a provider with a way out of ralph's, which nothing gets as far as to open.
type walled struct{ sandboxes.Provider }

func (w walled) Capabilities() sandboxes.Capabilities {
	c := w.Provider.Capabilities()
	c.Egress = true
	return c
}

var errNoLogin = errors.New("no login; log in with keyed")

// wantUntold fails the test if any issue shows that there was a run.
func (f *fixture) wantUntold(keys ...string) {
	f.t.Helper()
	for _, key := range keys {
		if text := f.text(key); strings.Contains(text, "ralph:") || !strings.Contains(text, "labels: [no-human]") {
			f.t.Errorf("the issue was told:\n%s", text)
		}
	}
}

// A login that is missing is found before the first run: nothing is tried, and the next sweep looks again.
func TestMissingLoginEndsTheSweepAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var calls atomic.Int32
	f.Config.Agent = keyed{login: func() error { calls.Add(1); return errNoLogin }}
	f.Config.Sandboxes = walled{f.Config.Sandboxes}
	if s := f.sweep(t.Context()); s.Unavailable != nil || calls.Load() != 0 {
		t.Errorf("an empty backlog needs no login: %+v", s)
	}
	f.issue("a")
	f.issue("b")
	for range 2 {
		s := f.sweep(t.Context())
		var unusable *pool.AgentError
		if len(s.Runs) != 0 || !errors.As(s.Unavailable, &unusable) || !errors.Is(s.Unavailable, errNoLogin) || !s.ParkedUntil.IsZero() {
			t.Fatalf("%+v", s)
		}
	}
	f.wantUntold("a", "b")
	f.clean()
}

// One that ends during the sweep costs the run that meets it no attempt.
func TestLoginThatEndsDuringTheSweep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var calls atomic.Int32
	f.Config.Agent = keyed{login: func() error {
		if calls.Add(1) == 1 {
			return nil
		}
		return errNoLogin
	}}
	f.Config.Sandboxes = walled{f.Config.Sandboxes}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	if r := f.only(s); r.Verdict.Outcome != pool.AgentUnavailable || r.Verdict.Counted || s.Unavailable == nil || !s.ParkedUntil.IsZero() {
		t.Fatalf("%+v", s)
	}
	f.wantUntold("a", "b")
	f.clean()
}

// So does a program that cannot be started; once it can, the next sweep works without waiting.
func TestMissingProgramEndsTheSweepAndCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	working := f.Config.Options.Command
	f.Config.Options.Command = []string{"ralph-test-no-such-agent"}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	if r := f.only(s); r.Verdict.Outcome != pool.AgentUnavailable || r.Verdict.Counted || s.Unavailable == nil || !s.ParkedUntil.IsZero() {
		t.Fatalf("%+v", s)
	}
	if why := s.Unavailable.Error(); !strings.Contains(why, "ralph-test-no-such-agent") || !strings.Contains(why, "--agent-command") {
		t.Errorf("unavailable: %s", why)
	}
	f.wantUntold("a", "b")
	f.clean()
	f.Config.Options.Command = working
	if s := f.sweep(t.Context()); s.Count(pool.Succeeded) != 2 {
		t.Errorf("%+v", s)
	}
}

// closed is a provider that opens no sandbox from one on.
type closed struct {
	sandboxes.Provider
	opens *atomic.Int32 // how many still open
}

var errNoImage = errors.New("no image; build it")

func (c closed) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	if c.opens.Add(-1) < 0 {
		return nil, errNoImage
	}
	return c.Provider.Open(ctx, s)
}

// What no sandbox opens for is told once and not issue by issue; what one run's does not is that run's.
func TestSandboxThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var opens atomic.Int32
	f.Config.Sandboxes = closed{f.Config.Sandboxes, &opens}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	var unusable *pool.SandboxError
	if r := f.only(s); r.Verdict.Outcome != pool.AgentUnavailable || r.Verdict.Counted || !errors.As(s.Unavailable, &unusable) || !errors.Is(s.Unavailable, errNoImage) {
		t.Fatalf("%+v", s)
	}
	f.wantUntold("a", "b")
	f.clean()

	opens.Store(1)
	s = f.sweep(t.Context())
	var outcomes []pool.Outcome
	for _, r := range s.Runs {
		outcomes = append(outcomes, r.Verdict.Outcome)
	}
	if want := []pool.Outcome{pool.Succeeded, pool.Failed}; !slices.Equal(outcomes, want) || s.Unavailable != nil {
		t.Errorf("%v, want %v: %+v", outcomes, want, s)
	}
}

// choosy is a provider that does not open over some worktrees.
type choosy struct {
	sandboxes.Provider
	refuse func(sandboxes.Spec) bool
}

func (c choosy) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	if c.refuse(s) {
		return nil, errNoImage
	}
	return c.Provider.Open(ctx, s)
}

// An issue whose own earlier commits keep its sandbox from opening does not keep the backlog from being worked.
func TestSandboxThatDoesNotOpenOverEarlierWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	open := f.Config.Sandboxes
	f.Config.Parallel, f.Config.Gate = 1, []loop.Command{{Line: "false"}}
	f.issue("a")
	if r := f.only(f.sweep(t.Context())); r.Verdict.Outcome != pool.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	f.issue("b")
	f.Config.Gate = nil
	f.Config.Sandboxes = choosy{open, func(s sandboxes.Spec) bool { return strings.HasPrefix(filepath.Base(s.Worktree), "a-") }}
	s := f.sweep(t.Context(), "a", "b")
	outcomes := map[string]pool.Outcome{}
	for _, r := range s.Runs {
		outcomes[r.Key] = r.Verdict.Outcome
	}
	if outcomes["a"] != pool.Failed || outcomes["b"] != pool.Succeeded || s.Unavailable != nil {
		t.Errorf("%v: %+v", outcomes, s)
	}
}
