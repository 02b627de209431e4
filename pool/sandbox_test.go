package pool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// bindingProvider is a provider whose commands see the private repository in place of the worktree's own, as behind a mount. It
// isolates nothing else.
type bindingProvider struct {
	*sandboxes.None
	opened func(sandboxes.Spec)
}

func newBindingProvider(opened func(sandboxes.Spec)) bindingProvider {
	return bindingProvider{sandboxes.NewNone(sandboxes.NoneConfig{}), opened}
}

func (bindingProvider) Name() string { return "binding" }

func (bindingProvider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

func (b bindingProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if b.opened != nil {
		b.opened(spec)
	}
	spec.Env = append(slices.Clip(spec.Env), "GIT_DIR="+spec.GitDir, "GIT_WORK_TREE="+spec.Worktree)
	return b.None.Open(ctx, spec)
}

// An isolated agent has a repository of its own, without the user's objects; its work is imported, and nothing is left behind.
func TestPrivateRepositoryOfARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits+`; echo undone > undone.txt; touch "$GIT_DIR/hooks/post-commit"`)
	var specs []sandboxes.Spec
	f.Config.Run.Sandboxes = newBindingProvider(func(s sandboxes.Spec) { specs = append(specs, s) })
	f.Config.Run.Gate = lines(`git diff --quiet HEAD -- "$RALPH_ISSUE_KEY.txt" && test "$(git rev-list --count HEAD)" -eq 2`)
	f.issue("a")
	rec := f.one()
	if rec.Verdict.Outcome != journal.Succeeded || rec.Commits != 1 || rec.WIP == "" || rec.Verified.Tip != rec.Tip {
		t.Fatalf("%+v", rec)
	}
	if text := f.git(f.repo, "show", "ralph/a:a.txt"); text != "work" {
		t.Errorf("a.txt is %q", text)
	}
	if text := f.git(f.repo, "show", rec.WIP+":undone.txt"); text != "undone" {
		t.Errorf("undone.txt is %q", text)
	}
	if len(specs) != 3 || specs[1].Worktree == specs[2].Worktree || specs[1].GitDir == specs[2].GitDir {
		t.Fatalf("the gate on base and tip has no sandbox of its own: %+v", specs)
	}
	for _, spec := range specs {
		if slices.Contains(spec.Objects, filepath.Join(f.repo, ".git", "objects")) {
			t.Errorf("the sandbox sees the user's objects: %v", spec.Objects)
		}
		if _, err := os.Stat(spec.GitDir); !os.IsNotExist(err) {
			t.Errorf("private repository is left: %v", err)
		}
	}
	f.clean()
}

// Runs of isolated agents that are merged one after the other are rebased, and their gate runs again in the sandbox.
func TestPrivateRepositoryMerged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = newBindingProvider(nil)
	f.Config.Run.Publish, f.Config.Parallel = journal.PublishMerge, 3
	f.Config.Run.Gate = lines(`test -z "$(git status --porcelain)"`)
	for _, key := range []string{"a", "b", "c"} {
		f.issue(key)
	}
	s := f.sweep(t.Context())
	for _, rec := range s.Runs {
		if rec.Verdict.Outcome != journal.Succeeded {
			t.Errorf("%s: %+v", rec.Key, rec)
		}
	}
	if names := f.git(f.repo, "ls-tree", "--name-only", "main"); len(s.Runs) != 3 || names != ".gitignore\nREADME\na.txt\nb.txt\nc.txt" {
		t.Errorf("main has %s", names)
	}
	f.clean()
}

// privateTree makes the worktree of a run of the issue a, with a private repository.
func (f *fixture) privateTree(run string) *worktree.Tree {
	f.t.Helper()
	base, err := f.Config.Run.Repo.Base(f.t.Context(), "main")
	if err != nil {
		f.t.Fatal(err)
	}
	tree, err := f.Config.Run.Repo.Add(f.t.Context(), worktree.Spec{Run: run, Key: "a", Branch: "ralph/a", Base: base, Private: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return tree
}

// commitInside makes an empty commit in the private repository of a worktree.
func (f *fixture) commitInside(tree *worktree.Tree, message string) {
	f.t.Helper()
	repo, err := tree.Sandbox(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.git(f.repo, "--git-dir="+repo.GitDir, "--work-tree="+tree.Dir(), "commit", "-q", "--allow-empty", "-m", message)
}

// Commits that exist only in the private repository of a run are found, even if its process, sandbox and record are gone.
func TestDeadRunWithPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = newBindingProvider(nil)
	f.issue("a")
	tree := f.privateTree("dead")
	f.commitInside(tree, "before the crash")
	if rec := f.one(); rec.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", rec)
	}
	if log := f.git(f.repo, "log", "--format=%s", "main..ralph/a"); log != "work on a\nbefore the crash" {
		t.Errorf("log: %s", log)
	}
	f.clean()
}

// When the claim of a hanging process has expired, the next holder imports the work from that run's private repository.
func TestHungRunWithPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = newBindingProvider(nil)
	f.issue("a")
	ctx := t.Context()
	f.one() // its record serves as a template
	hung := f.runs("a")[0]
	hung.ID, hung.Stage, hung.Ended, hung.Verdict, hung.Facts = "hung", journal.StageWork, time.Time{}, journal.Verdict{}, journal.Facts{}
	hung.PID = os.Getpid()
	if err := f.store.Memory.Save(ctx, hung); err != nil {
		t.Fatal(err)
	}
	tree := f.privateTree("hung")
	f.commitInside(tree, "before it hung")
	f.issue("a")
	f.sweep(ctx, "a")
	if log := f.git(f.repo, "log", "--format=%s", "main..ralph/a"); log != "work on a\nbefore it hung\nwork on a" {
		t.Errorf("log: %s", log)
	}
	if kept, _ := os.ReadDir(filepath.Join(f.state, "kept")); len(kept) > 0 {
		t.Errorf("put aside: %v", kept)
	}
}

// No sandbox is opened over a worktree in which nothing has worked: ralph may have died while it made it.
func TestDeathWhileTheWorktreeIsMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	ctx := t.Context()
	f.one()
	dead := f.runs("a")[0]
	dead.ID, dead.Stage, dead.Ended, dead.Verdict, dead.Facts = "dead", journal.StagePrepare, time.Time{}, journal.Verdict{}, journal.Facts{}
	dead.PID = 0
	if err := f.store.Memory.Save(ctx, dead); err != nil {
		t.Fatal(err)
	}
	tree := f.privateTree("dead")
	f.Config.Run.Sandboxes = newBindingProvider(func(s sandboxes.Spec) {
		if s.Worktree == tree.Dir() {
			t.Error("a sandbox was opened over it")
		}
	})
	f.issue("a")
	f.sweep(ctx, "a")
	if _, err := os.Stat(tree.Dir()); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// reapingProvider is a provider that reports what is reaped.
type reapingProvider struct {
	bindingProvider
	reap func(run string) error
}

func (r reapingProvider) Reap(_ context.Context, run string) error { return r.reap(run) }

// The sandbox of a dead run's clean checkout is removed with the run, whatever removes the checkout.
func TestCheckoutOfADeadRunIsReaped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var mu sync.Mutex
	reaped := map[string]bool{}
	f.Config.Run.Sandboxes = reapingProvider{newBindingProvider(nil), func(run string) error {
		mu.Lock()
		defer mu.Unlock()
		reaped[run] = true
		return nil
	}}
	f.issue("a")
	rec := f.one()
	f.pretend("a", journal.StageWork, nil)
	base, err := f.Config.Run.Repo.Base(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Config.Run.Repo.Add(t.Context(), worktree.Spec{Run: rec.ID + "-base", ParentRun: rec.ID, Key: "a", Base: base, Detached: true, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	f.issue("a")
	w, err := pool.NewWorker(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Work(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if !reaped[rec.ID+"-base"] {
		t.Errorf("reaped: %v", reaped)
	}
	f.clean()
}

// Processes of another clone's dead run have to end before its issue is worked, even if that fails once.
func TestDeadRunThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	const foreign = "20260102-150405-00000000beef"
	f := newFixture(t, commits)
	var mu sync.Mutex
	tries, away := 0, true
	f.Config.Run.Sandboxes = reapingProvider{newBindingProvider(nil), func(run string) error {
		mu.Lock()
		defer mu.Unlock()
		if run != foreign {
			return nil
		}
		if tries++; away {
			return errors.New("the daemon is away")
		}
		return nil
	}}
	f.issue("a")
	clock := f.expired(foreign)
	for range 2 {
		if s := f.sweep(t.Context()); len(s.Runs) > 0 {
			t.Fatalf("worked beside the dead run: %v", outcomes(s))
		}
	}
	away, *clock = false, clock.Add(24*time.Hour)
	if s := f.sweep(t.Context()); outcomes(s)["a"] != journal.Succeeded || tries < 2 {
		t.Errorf("%v %v after %d tries", outcomes(s), skips(s), tries)
	}
}

// limitedProvider is a provider whose closed sandboxes report that a limit has killed a process.
type limitedProvider struct{ *sandboxes.None }

type limitedBox struct {
	sandboxes.Sandbox
	closed bool
}

func (c limitedProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := c.None.Open(ctx, spec)
	return &limitedBox{Sandbox: box}, err
}

func (b *limitedBox) Close(ctx context.Context) error {
	b.closed = true
	return b.Sandbox.Close(ctx)
}

func (b *limitedBox) Notices() []sandboxes.Notice {
	if !b.closed {
		return nil
	}
	return []sandboxes.Notice{sandboxes.MemoryNotice(2, 64<<20)}
}

// Notices of a sandbox are in the report, and in the record of a prompt and of a command.
func TestNoticesAreReported(t *testing.T) {
	t.Parallel()
	notice := sandboxes.MemoryNotice(2, 64<<20)
	notice.Text = "sandbox: " + notice.Text
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = limitedProvider{sandboxes.NewNone(sandboxes.NoneConfig{})}
	f.issue("a")
	rec := f.one()
	if rec.Verdict.Outcome != journal.Succeeded || !slices.Contains(rec.Warnings, notice) {
		t.Errorf("%+v", rec)
	}
	if text := f.text("a"); strings.Count(text, notice.Text) != 1 {
		t.Errorf("report:\n%s", text)
	}
	f.clean()
	command := f.job(job.StrategyMerge)
	command.Command = &run.Command{Argv: []string{"true"}}
	for _, j := range []job.Job{f.job(job.StrategyMerge), command} {
		if res := do(t, j); !slices.Contains(res.Record.Warnings, notice) {
			t.Errorf("%v", res.Record.Warnings)
		}
	}
}

// breakingProvider is a bindingProvider whose first sandbox with an import breaks.
type breakingProvider struct {
	bindingProvider
	broken *atomic.Pointer[breakingBox]
}

func (b breakingProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	home, err := os.MkdirTemp(filepath.Dir(spec.Worktree), "home-")
	if err != nil {
		return nil, err
	}
	spec.Env = append(slices.Clip(spec.Env), "HOME="+home)
	box, err := b.bindingProvider.Open(ctx, spec)
	return &breakingBox{box, b.broken}, err
}

type breakingBox struct {
	sandboxes.Sandbox
	broken *atomic.Pointer[breakingBox]
}

func (b *breakingBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if slices.Contains(cmd.Argv, "ralph-import") && b.broken.CompareAndSwap(nil, b) || b.broken.Load() == b {
		return sandboxes.Exit{}, errors.New("its first process was killed")
	}
	return b.Sandbox.Exec(ctx, cmd)
}

// A run continues in the sandbox that replaces a broken one, with the files of setup in its home.
func TestSandboxThatBreaks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Sandboxes = breakingProvider{newBindingProvider(nil), new(atomic.Pointer[breakingBox])}
	f.Config.Run.Setup, f.Config.Run.Gate = lines("touch ~/made"), lines("test -e ~/made")
	f.issue("a")
	if rec := f.one(); rec.Verdict.Outcome != journal.Succeeded || len(rec.Facts.Iterations) != 1 {
		t.Errorf("%d iterations, %+v", len(rec.Facts.Iterations), rec.Verdict)
	}
}
