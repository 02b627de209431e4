package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// silentProvider is a provider whose engine does not answer from the end of the work on: no sandbox closes, and none is reaped.
type silentProvider struct {
	bindingProvider
	files sandboxes.Files
	away  atomic.Bool
	only  atomic.Bool // it still answers Reap
	last  atomic.Bool // it stops answering after the next import
	left  sync.Map    // sandboxes by run
}

func (s *silentProvider) count() (n int) {
	s.left.Range(func(any, any) bool { n++; return true })
	return n
}

// wantNone reports sandboxes that are left.
func (s *silentProvider) wantNone(t *testing.T) {
	t.Helper()
	if n := s.count(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// silent makes a silentProvider the provider of the runs.
func (f *fixture) silent(files sandboxes.Files) *silentProvider {
	s := &silentProvider{bindingProvider: newBindingProvider(nil), files: files}
	f.Config.Run.Sandboxes = s
	return s
}

var errSilent = errors.New("the engine does not answer")

func (s *silentProvider) Capabilities() sandboxes.Capabilities {
	c := s.bindingProvider.Capabilities()
	c.Files = s.files
	return c
}

func (s *silentProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := s.bindingProvider.Open(ctx, spec)
	if err == nil {
		s.left.Store(spec.Run, true)
	}
	return silentBox{box, s, spec.Run}, err
}

func (s *silentProvider) Reap(_ context.Context, run string) error {
	if s.away.Load() {
		return errSilent
	}
	s.left.Delete(run)
	return nil
}

type silentBox struct {
	sandboxes.Sandbox
	s   *silentProvider
	run string
}

func (b silentBox) Close(ctx context.Context) error {
	if b.s.away.Load() || b.s.only.Load() {
		return errors.Join(errSilent, b.Sandbox.Close(ctx))
	}
	b.s.left.Delete(b.run)
	return b.Sandbox.Close(ctx)
}

func (b silentBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if slices.Contains(cmd.Argv, "ralph-import") && b.s.last.Swap(false) {
		defer b.s.away.Store(true)
	}
	return b.Sandbox.Exec(ctx, cmd)
}

// The sandbox of a run that ended while the engine did not answer is removed by the next sweep, with its worktree.
func TestSandboxThatWasNotClosed(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]sandboxes.Files{"bind": sandboxes.Bind, "copy": sandboxes.Copy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			s := f.silent(files)
			f.issue("a")
			f.onStage(journal.StageVerify, func(journal.Record) { s.away.Store(true) })
			rec := f.one()
			if rec.Verdict.Outcome != journal.Succeeded || s.count() != 1 {
				t.Fatalf("%+v; %d sandboxes", rec.Verdict, s.count())
			}
			if want := sandboxes.Noticef("the sandbox could not be closed, so some of its processes may be left: %v", errSilent); !slices.Contains(rec.Warnings, want) {
				t.Errorf("warnings are %v", rec.Warnings)
			}
			s.away.Store(false)
			f.sweep(t.Context())
			s.wantNone(t)
			if _, err := os.Stat(rec.Tree); rec.Tree != "" && !os.IsNotExist(err) {
				t.Errorf("the worktree is left: %v", err)
			}
			f.clean()
		})
	}
}

// A run replaces an earlier one only when the sandbox of the earlier one is gone.
func TestSandboxThatWasNotClosedBeforeAnotherRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; exit 1`)
	s := f.silent(sandboxes.Bind)
	f.issue("a")
	f.onStage(journal.StageVerify, func(journal.Record) { s.away.Store(true) })
	if rec := f.one(); rec.Verdict.Outcome != journal.Failed || s.count() != 1 {
		t.Fatalf("%+v; %d sandboxes", rec.Verdict, s.count())
	}
	p := f.pool()
	if r, err := p.Work(t.Context(), "a"); err != nil || r.Record.Facts.Open == nil {
		t.Errorf("%+v, %v", r.Record.Verdict, err)
	}
	s.away.Store(false)
	if _, err := p.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantNone(t)
	f.clean()
}

// The same holds if a sandbox that is not gone has imported the work of the earlier run.
func TestSandboxOfAnImportThatWasNotClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := f.silent(sandboxes.Bind)
	f.issue("a")
	if _, err := f.privateTree("dead").Sandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.last.Store(true)
	p := f.pool()
	if r, err := p.Work(t.Context(), "a"); err != nil || r.Record.Facts.Open == nil || !s.away.Load() {
		t.Errorf("%+v, %v", r.Record.Verdict, err)
	}
	s.away.Store(false)
	if _, err := p.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantNone(t)
	f.clean()
}

// A sweep also ends the sandbox of a prompt that was not closed.
func TestSandboxOfAJobThatWasNotClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	s := f.silent(sandboxes.Bind)
	s.away.Store(true)
	do(t, f.job(job.StrategyMerge))
	if n := s.count(); n != 1 {
		t.Fatalf("%d sandboxes", n)
	}
	s.away.Store(false)
	f.sweep(t.Context())
	s.wantNone(t)
	f.clean()
}

// The sandbox over a kept worktree is ended with the run; otherwise the record says that it may still run.
func TestSandboxOfAKeptWorktreeThatWasNotClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	s := f.silent(sandboxes.Bind)
	j := f.job(job.StrategyBranch)
	j.Branch = "topic"
	s.away.Store(true)
	if rec := do(t, j).Record; !rec.SandboxMayRun || rec.Tree == "" || s.count() != 1 {
		t.Errorf("%d sandboxes, unclosed %v, %q", s.count(), rec.SandboxMayRun, rec.Warnings)
	}
	s.only.Store(true)
	s.away.Store(false)
	if rec := do(t, j).Record; rec.SandboxMayRun || s.count() != 0 {
		t.Errorf("%d sandboxes, unclosed %v, %q", s.count(), rec.SandboxMayRun, rec.Warnings)
	}
}

// Work in a sandbox with a disk of its own stays there until it is imported.
func TestSandboxThatWasNotClosedKeepsWhatIsNotImported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	m := unimportableProvider{newBindingProvider(nil), new(atomic.Int32)}
	f.Config.Run.Sandboxes, f.Config.Run.MaxIterations = m, 1
	if _, err := f.job(job.StrategyMerge).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := m.reaped.Load(); n != 0 {
		t.Errorf("it was reaped %d times", n)
	}
}

// unimportableProvider is a provider with disks from which nothing can be imported, and whose sandboxes do not close.
type unimportableProvider struct {
	bindingProvider
	reaped *atomic.Int32
}

func (u unimportableProvider) Capabilities() sandboxes.Capabilities {
	c := u.bindingProvider.Capabilities()
	c.Files = sandboxes.Copy
	return c
}

func (u unimportableProvider) Reap(context.Context, string) error {
	u.reaped.Add(1)
	return nil
}

func (u unimportableProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := u.bindingProvider.Open(ctx, spec)
	return unimportableBox{box}, err
}

type unimportableBox struct{ sandboxes.Sandbox }

func (b unimportableBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if slices.Contains(cmd.Argv, "ralph-import") {
		return sandboxes.Exit{}, errSilent
	}
	return b.Sandbox.Exec(ctx, cmd)
}

func (b unimportableBox) Close(ctx context.Context) error {
	return errors.Join(errSilent, b.Sandbox.Close(ctx))
}

// hangingImportProvider is a bindingProvider whose imports hang as long as a file exists.
type hangingImportProvider struct {
	bindingProvider
	while  string
	begins func()
}

func (m hangingImportProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := m.bindingProvider.Open(ctx, spec)
	return hangingImportBox{box, m}, err
}

type hangingImportBox struct {
	sandboxes.Sandbox
	m hangingImportProvider
}

func (b hangingImportBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if _, err := os.Stat(b.m.while); err == nil && slices.Contains(cmd.Argv, "ralph-import") {
		b.m.begins()
		<-ctx.Done()
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	return b.Sandbox.Exec(ctx, cmd)
}

// A run that is asked to end while its commits cannot be imported is interrupted: neither it nor the agent has failed. The next
// sweep imports them.
func TestStopWhileTheImportHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	while := filepath.Join(t.TempDir(), "away")
	if err := os.WriteFile(while, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.Config.Run.Sandboxes, f.Config.Run.StopGrace = hangingImportProvider{newBindingProvider(nil), while, func() { stop(nil) }}, time.Millisecond
	f.issue("a")
	if s := f.sweep(ctx); !s.Interrupted {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(while); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(f.sweep(t.Context())); got["a"] != journal.Succeeded {
		t.Errorf("%v", got)
	}
	if r := f.runs("a")[0]; r.Verdict.Outcome != journal.Interrupted || r.Verdict.Counted || r.Commits != 1 {
		t.Errorf("%d commits, %+v, %q", r.Commits, r.Verdict, r.Warnings)
	}
	f.clean()
}

// unclosableProvider is a breakingProvider whose broken sandbox does not close.
type unclosableProvider struct {
	breakingProvider
	reaped *atomic.Int32
}

func (s unclosableProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := s.breakingProvider.Open(ctx, spec)
	return unclosableBox{box.(*breakingBox)}, err
}

func (s unclosableProvider) Reap(context.Context, string) error {
	s.reaped.Add(1)
	return nil
}

type unclosableBox struct{ *breakingBox }

func (b unclosableBox) Close(ctx context.Context) error {
	err := b.breakingBox.Close(ctx)
	if b.broken.Load() == b.breakingBox {
		err = errors.Join(errSilent, err)
	}
	return err
}

// A broken sandbox that does not close is ended with the run, whose last sandbox has closed.
func TestBrokenSandboxThatWasNotClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	s := unclosableProvider{breakingProvider{newBindingProvider(nil), new(atomic.Pointer[breakingBox])}, new(atomic.Int32)}
	f.Config.Run.Sandboxes = s
	f.issue("a")
	if rec := f.one(); rec.Verdict.Outcome != journal.Succeeded || s.reaped.Load() == 0 {
		t.Errorf("%+v; reaped: %d", rec.Verdict, s.reaped.Load())
	}
	f.clean()
}
