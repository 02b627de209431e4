package pool_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree/base"
)

// loginAgent is an agent whose login may be missing.
type loginAgent struct {
	agents.Command
	login func() error
}

func (k loginAgent) Describe() agents.Description {
	d := k.Command.Describe()
	d.Endpoint = &agents.Endpoint{Name: "keyed", Upstream: "https://model.example", ProxySettings: func(agents.Service, string, string) (env, args []string) { return nil, nil }}
	d.Login = agents.Login{File: "login", Read: func(string) (agents.Token, error) { return agents.Token{}, k.login() }}
	return d
}

// proxyProvider is a provider that needs an egress proxy, which no test opens.
type proxyProvider struct{ sandboxes.Provider }

func (w proxyProvider) Capabilities() sandboxes.Capabilities {
	c := w.Provider.Capabilities()
	c.Egress = true
	return c
}

var errNoLogin = errors.New("no login; log in with keyed")

// wantUnreported fails the test if any issue shows that there was a run.
func (f *fixture) wantUnreported(keys ...string) {
	f.t.Helper()
	for _, key := range keys {
		if text := f.text(key); strings.Contains(text, "ralph:") || !strings.Contains(text, "labels: [no-human]") {
			f.t.Errorf("the issue has a report:\n%s", text)
		}
	}
}

// A missing login is found before the first run: nothing is tried, and the next sweep checks again.
func TestMissingLoginEndsTheSweepAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var calls atomic.Int32
	f.Config.Run.Agent = loginAgent{login: func() error { calls.Add(1); return errNoLogin }}
	f.Config.Run.Sandboxes = proxyProvider{f.Config.Run.Sandboxes}
	if s := f.sweep(t.Context()); s.Unavailable != nil || calls.Load() != 0 {
		t.Errorf("an empty backlog needs no login: %+v", s)
	}
	f.issue("a")
	f.issue("b")
	for range 2 {
		s := f.sweep(t.Context())
		var unusable *gateway.AgentError
		if len(s.Runs) != 0 || !errors.As(s.Unavailable, &unusable) || !errors.Is(s.Unavailable, errNoLogin) || !s.ParkedUntil.IsZero() {
			t.Fatalf("%+v", s)
		}
	}
	f.wantUnreported("a", "b")
	f.clean()
}

// A merge starts no agent, and needs no login.
func TestMergeNeedsNoLogin(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.Config.Run.Gate = lines("test -f a.txt")
	f.Config.Run.Agent = loginAgent{login: func() error { return errNoLogin }}
	f.Config.Run.Sandboxes = proxyProvider{f.Config.Run.Sandboxes}
	if r, err := f.pool().Merge(t.Context(), "a"); err != nil || r.Record.Verdict.Outcome != journal.Succeeded || !f.exists("a.txt") {
		t.Errorf("%+v, %v", r.Record.Verdict, err)
	}
	f.clean()
}

// A login that expires during the sweep costs the run that meets it no attempt.
func TestLoginThatEndsDuringTheSweep(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var calls atomic.Int32
	f.Config.Run.Agent = loginAgent{login: func() error {
		if calls.Add(1) == 1 {
			return nil
		}
		return errNoLogin
	}}
	f.Config.Run.Sandboxes = proxyProvider{f.Config.Run.Sandboxes}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	if r := f.only(s); r.Verdict.Outcome != journal.AgentUnavailable || r.Verdict.Counted || s.Unavailable == nil || !s.ParkedUntil.IsZero() {
		t.Fatalf("%+v", s)
	}
	f.wantUnreported("a", "b")
	f.clean()
}

// The same holds for a program that cannot be started; once it can, the next sweep works without waiting.
func TestMissingProgramEndsTheSweepAndCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	working := f.Config.Run.Options.Command
	f.Config.Run.Options.Command = []string{"ralph-test-no-such-agent"}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	if r := f.only(s); r.Verdict.Outcome != journal.AgentUnavailable || r.Verdict.Counted || s.Unavailable == nil || !s.ParkedUntil.IsZero() {
		t.Fatalf("%+v", s)
	}
	if why := s.Unavailable.Error(); !strings.Contains(why, "ralph-test-no-such-agent") {
		t.Errorf("unavailable: %s", why)
	}
	f.wantUnreported("a", "b")
	f.clean()
	f.Config.Run.Options.Command = working
	if s := f.sweep(t.Context()); s.Count(journal.Succeeded) != 2 {
		t.Errorf("%+v", s)
	}
}

// exhaustedProvider is a provider that opens a number of sandboxes and then no more.
type exhaustedProvider struct {
	sandboxes.Provider
	opens *atomic.Int32 // how many still open
}

var errNoImage = errors.New("no image; build it")

func (c exhaustedProvider) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	if c.opens.Add(-1) < 0 {
		return nil, errNoImage
	}
	return c.Provider.Open(ctx, s)
}

// awayProvider is a provider that cannot be used while it is away.
type awayProvider struct {
	sandboxes.Provider
	is *atomic.Bool
}

func (a awayProvider) Check(ctx context.Context) error {
	if a.is.Load() {
		return errNoImage
	}
	return a.Provider.Check(ctx)
}

func (a awayProvider) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	if a.is.Load() {
		return nil, errNoImage
	}
	return a.Provider.Open(ctx, s)
}

// In a process that keeps running, a sandbox that stops being usable counts against no issue.
func TestSandboxThatIsAwayLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var is atomic.Bool
	f.Config.Run.Sandboxes = awayProvider{f.Config.Run.Sandboxes, &is}
	p := f.pool()
	f.issue("a")
	if s, err := p.Sweep(t.Context()); err != nil || s.Count(journal.Succeeded) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	is.Store(true)
	f.issue("b")
	s, err := p.Sweep(t.Context())
	if r := f.only(s); err != nil || r.Verdict.Outcome != journal.EnvironmentUnavailable || r.Verdict.Counted || s.Unavailable == nil {
		t.Errorf("%+v, %v", s, err)
	}
	is.Store(false)
	if s, err := p.Sweep(t.Context()); err != nil || s.Count(journal.Succeeded) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	f.clean()
}

// A sandbox that opens for no run is reported once, not for each issue. If it did open before, a failure affects only its own
// run.
func TestSandboxThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var opens atomic.Int32
	f.Config.Run.Sandboxes = exhaustedProvider{f.Config.Run.Sandboxes, &opens}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	var unusable *run.UnavailableError
	if r := f.only(s); r.Verdict.Outcome != journal.EnvironmentUnavailable || r.Verdict.Counted || !errors.As(s.Unavailable, &unusable) ||
		unusable.Reason.Code != journal.ReasonOpen || !strings.Contains(s.Unavailable.Error(), errNoImage.Error()) {
		t.Fatalf("%+v", s)
	}
	f.wantUnreported("a", "b")
	f.clean()

	opens.Store(1)
	s = f.sweep(t.Context())
	if got := outcomes(s); got["a"] != journal.Succeeded || got["b"] != journal.Failed || s.Unavailable != nil {
		t.Errorf("%v: %+v", got, s)
	}
}

// An outage of an isolating sandbox counts against no issue, however many sweeps it lasts: nothing has worked in the worktrees.
func TestSandboxThatDoesNotOpenForManySweeps(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var opens atomic.Int32
	f.Config.Run.Sandboxes = exhaustedProvider{newBindingProvider(nil), &opens}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	p := f.pool()
	for range 11 {
		s := f.sweepBy(t.Context(), p)
		if r := f.only(s); r.Verdict.Outcome != journal.EnvironmentUnavailable || s.Unavailable == nil || r.Tree != "" {
			t.Fatalf("%+v, unavailable: %v, tree %s", r.Verdict, s.Unavailable, r.Tree)
		}
	}
	f.wantUnreported("a", "b")
	opens.Store(2)
	if s, err := p.Sweep(t.Context()); err != nil || s.Count(journal.Succeeded) != 2 {
		t.Errorf("after the outage: %v: %+v", err, s)
	}
	f.clean()
}

// choosyProvider is a provider that does not open over some worktrees.
type choosyProvider struct {
	sandboxes.Provider
	refuse func(sandboxes.Spec) bool
}

func (c choosyProvider) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	if c.refuse(s) {
		return nil, errNoImage
	}
	return c.Provider.Open(ctx, s)
}

// An issue whose own earlier commits keep its sandbox from opening does not stop the rest of the backlog.
func TestSandboxThatDoesNotOpenOverEarlierWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	open := f.Config.Run.Sandboxes
	f.Config.Parallel, f.Config.Run.Gate = 1, lines("false")
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	f.issue("b")
	f.Config.Run.Gate = nil
	f.Config.Run.Sandboxes = choosyProvider{open, func(s sandboxes.Spec) bool { return strings.HasPrefix(filepath.Base(s.Worktree), "a-") }}
	s := f.sweep(t.Context(), "a", "b")
	if got := outcomes(s); got["a"] != journal.Failed || got["b"] != journal.Succeeded || s.Unavailable != nil {
		t.Errorf("%v: %+v", got, s)
	}
}

// nilProvider is a provider whose Open returns neither a sandbox nor an error.
type nilProvider struct{ sandboxes.Provider }

func (nilProvider) Open(context.Context, sandboxes.Spec) (sandboxes.Sandbox, error) { return nil, nil } //nolint:nilnil // the mistake under test

// Such a provider ends the run with an error, and not the process.
func TestProviderThatOpensNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = nilProvider{f.Config.Run.Sandboxes}
	f.issue("a")
	if s := f.sweep(t.Context()); !strings.Contains(f.only(s).Verdict.Reason.Detail, "neither a sandbox nor an error") {
		t.Errorf("%+v", f.only(s).Verdict)
	}
	f.clean()
}

// A branch of ralph's that is checked out is no base of new runs, unless it is named.
func TestOwnBranchIsNoBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.git(f.repo, "switch", "-q", "ralph/a")
	f.issue("b")
	if s, err := f.pool().Sweep(t.Context()); !errors.Is(err, base.ErrOwn) || len(s.Runs) != 0 {
		t.Errorf("a sweep: %+v, %v", s, err)
	}
	if _, err := f.pool().Work(t.Context(), "b"); !errors.Is(err, base.ErrOwn) {
		t.Errorf("one issue: %v", err)
	}
	f.Config.Run.Base = "ralph/a"
	if r := f.one("b"); r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("where it is named: %+v", r.Verdict)
	}
	f.clean()
}
