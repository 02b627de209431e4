package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return native.New(native.Config{}) }, sandboxtest.Options{})
}

func TestGitWorksInside(t *testing.T) {
	t.Parallel()
	sandboxtest.Git(t, native.New(native.Config{}))
}

// layered opens every worktree over an empty lower folder, and mounts a shared host folder: a named pipe in an overlay does
// not connect to the host.
type layered struct {
	*native.Provider
	shared string
}

func (p layered) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	spec.Mounts = append(spec.Mounts, sandboxes.Mount{Host: p.shared, Inside: p.shared})
	spec.Lower = filepath.Join(filepath.Dir(filepath.Dir(spec.Worktree)), "lower")
	return p.Provider.Open(ctx, spec)
}

func TestConformsWithLowerFolder(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return layered{native.New(native.Config{}), shared} }, sandboxtest.Options{
		Shared: shared,
		Worktree: func(t *testing.T) string {
			at := t.TempDir()
			worktree := filepath.Join(at, "tree", "files")
			if err := errors.Join(os.MkdirAll(worktree, 0o755), os.Mkdir(filepath.Join(at, "lower"), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = disk.RemoveAll(filepath.Dir(worktree)) })
			return worktree
		},
	})
}
