package pool_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// diskProvider is a provider whose sandboxes have disks: without its disk the work of a run is lost. While it is broken, no
// import works and no sandbox closes.
type diskProvider struct {
	bindingProvider
	dir    string // one folder for each disk, with the initial files and repository
	broken *atomic.Bool
}

func newDiskProvider(t *testing.T) diskProvider {
	return diskProvider{newBindingProvider(nil), t.TempDir(), new(atomic.Bool)}
}

func (diskProvider) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Copy, Isolation: sandboxes.Namespaces}
}

func (d diskProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	disk := filepath.Join(d.dir, spec.Run)
	if _, err := os.Stat(disk); err != nil {
		err := os.Mkdir(disk, 0o700)
		for name, dir := range map[string]string{"files": spec.Worktree, "git": spec.GitDir} {
			err = errors.Join(err, os.Symlink(dir, filepath.Join(disk, name+".of")), os.CopyFS(filepath.Join(disk, name), os.DirFS(dir)))
		}
		if err != nil {
			return nil, err
		}
	}
	box, err := d.bindingProvider.Open(ctx, spec)
	return diskBox{box, d, spec.Run}, err
}

// Reap removes the disk.
func (d diskProvider) Reap(_ context.Context, run string) error {
	disk := filepath.Join(d.dir, run)
	if _, err := os.Stat(disk); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{"files", "git"} {
		dir, err := os.Readlink(filepath.Join(disk, name+".of"))
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), os.Rename(filepath.Join(disk, name), dir))
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(disk)
}

type diskBox struct {
	sandboxes.Sandbox
	d   diskProvider
	run string
}

func (b diskBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if b.d.broken.Load() && slices.Contains(cmd.Argv, "ralph-import") {
		return sandboxes.Exit{}, errSilent
	}
	return b.Sandbox.Exec(ctx, cmd)
}

func (b diskBox) Close(ctx context.Context) error {
	if b.d.broken.Load() {
		return errors.Join(errSilent, b.Sandbox.Close(ctx))
	}
	return errors.Join(b.Sandbox.Close(ctx), b.d.Reap(ctx, b.run))
}

// Work of a job on a branch that is only on a sandbox's disk is imported before the next job on that branch.
func TestDiskOfAJobOnAReusedBranch(t *testing.T) {
	t.Parallel()
	for name, died := range map[string]bool{"ended": false, "died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			d := newDiskProvider(t)
			f.Config.Run.Sandboxes = d
			j := f.job(job.StrategyBranch)
			j.Branch = "topic"
			do(t, j) // makes the worktree
			do(t, j)
			d.broken.Store(true)
			res, err := j.Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rec := res.Record
			if died {
				rec.SandboxMayRun, rec.Ended, rec.PID, rec.Stage = false, time.Time{}, deadPID, journal.StageWork
				f.save(rec)
			}
			d.broken.Store(false)
			do(t, j)
			if got := len(strings.Fields(f.git(f.repo, "rev-list", "main..topic"))); got != 4 {
				t.Errorf("%d commits on the branch, want 4; %+v", got, rec.Verdict)
			}
			if left, err := os.ReadDir(d.dir); err != nil || len(left) > 0 {
				t.Errorf("disks are left: %v, %v", left, err)
			}
		})
	}
}

// Work of a dead job in a kept worktree is imported, even if an earlier job has made the worktree.
func TestDeathOfAJobOnAReusedBranch(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]sandboxes.Provider{"bind": newBindingProvider(nil), "copy": newDiskProvider(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			f.Config.Run.Sandboxes = p
			j := f.job(job.StrategyBranch)
			j.Branch = "topic"
			do(t, j)
			rec := do(t, j).Record
			rec.Ended, rec.PID, rec.Stage, rec.Commits, rec.Tree = time.Time{}, deadPID, journal.StageWork, 0, ""
			f.save(rec)
			var told []journal.Record
			if err := job.Recover(t.Context(), j.Run, func(r journal.Record) { told = append(told, r) }); err != nil {
				t.Fatal(err)
			}
			if len(told) != 1 || told[0].Commits != 2 || told[0].Tree == "" {
				t.Errorf("%+v", told)
			}
		})
	}
}

// breakingDiskProvider is a provider with disks, one of whose sandboxes breaks at a gate. Closing a broken sandbox leaves its
// disk.
type breakingDiskProvider struct {
	diskProvider
	gates *atomic.Int32 // number of gates until then
}

func (s breakingDiskProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := s.diskProvider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &breakingDiskBox{box.(diskBox), s.gates, false}, nil
}

type breakingDiskBox struct {
	diskBox
	gates  *atomic.Int32
	broken bool
}

func (b *breakingDiskBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if slices.Contains(cmd.Argv, "exit 0 # gate") && b.gates.Add(-1) == 0 {
		b.broken = true
	}
	if b.broken {
		return sandboxes.Exit{}, errSilent
	}
	return b.diskBox.Exec(ctx, cmd)
}

func (b *breakingDiskBox) Close(ctx context.Context) error {
	if b.broken {
		return b.Sandbox.Close(ctx)
	}
	return b.diskBox.Close(ctx)
}

// The disk of a sandbox that broke at a gate is removed, whichever gate it was: it has nothing unsaved.
func TestDiskOfASandboxThatBroke(t *testing.T) {
	t.Parallel()
	for at, name := range []string{"on the base", "in the worktree", "on a clean checkout"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			s := breakingDiskProvider{newDiskProvider(t), new(atomic.Int32)}
			s.gates.Store(int32(at + 1))
			f.Config.Run.Sandboxes, f.Config.Run.Gate = s, lines("exit 0 # gate")
			f.issue("a")
			f.sweep(t.Context())
			if n := s.gates.Load(); n > 0 {
				t.Fatalf("%d gates more were to run", n)
			}
			if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
				t.Errorf("disks are left: %v, %v", left, err)
			}
		})
	}
}
