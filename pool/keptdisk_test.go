package pool_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// failingImportProvider is a provider with disks whose first import fails.
type failingImportProvider struct {
	diskProvider
	failed *atomic.Bool
}

func (p failingImportProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := p.diskProvider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &failingImportBox{Sandbox: box, p: p}, nil
}

type failingImportBox struct {
	sandboxes.Sandbox
	p    failingImportProvider
	kept bool
}

func (b *failingImportBox) KeepDisk() string {
	b.kept = true
	return ""
}

func (b *failingImportBox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if slices.Contains(cmd.Argv, "ralph-import") && !b.p.failed.Swap(true) {
		return sandboxes.Exit{}, errSilent
	}
	return b.Sandbox.Exec(ctx, cmd)
}

func (b *failingImportBox) Close(ctx context.Context) error {
	if b.kept {
		return b.Sandbox.(diskBox).Sandbox.Close(ctx)
	}
	return b.Sandbox.Close(ctx)
}

// A sandbox that is closed before its work is imported leaves its disk to the next one.
func TestDiskOutlivesAFailedImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	p := failingImportProvider{newDiskProvider(t), new(atomic.Bool)}
	f.Config.Run.Sandboxes, f.Config.Run.MaxIterations = p, 1
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.Commits != 1 || !p.failed.Load() {
		t.Errorf("%d commits, %+v, %q", r.Commits, r.Verdict, r.Warnings)
	}
}
