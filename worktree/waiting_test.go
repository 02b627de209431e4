package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// However often an import fails because of the machine or the engine, the work stays in place, and no other run of the key
// replaces it. It is imported once the cause is gone.
func TestPassingFailureKeepsTheWork(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Inside{
		"engine gone": func(context.Context, Command) (int, error) { return 0, errors.New("cannot connect to the engine") },
		"no processes": func(_ context.Context, c Command) (int, error) {
			_, err := fmt.Fprintln(c.Stderr, "ralph-import: 12: Cannot fork")
			return 2, err
		},
		"killed": func(context.Context, Command) (int, error) { return 137, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			now := time.Now()
			f.repo.now = func() time.Time { return now }
			run := f.private("k", "r1")
			run.sh("echo work >done; git add done; git commit -qm work; echo draft >draft")
			for range 5 {
				if _, err := run.tree.Import(t.Context(), in); err == nil || !run.tree.MayRetryImport() {
					t.Fatalf("%v, waits %v", err, run.tree.MayRetryImport())
				}
				if err := run.tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) {
					t.Fatal(err)
				}
				if _, err := f.repo.Add(t.Context(), f.spec("k", "r2")); !errors.Is(err, ErrUnsaved) {
					t.Fatalf("another run: %v", err)
				}
			}
			if kept, err := os.ReadDir(f.repo.statePath("kept")); len(kept) > 0 {
				t.Errorf("set aside: %v, %v", kept, err)
			}
			got := f.imported(run.tree)
			if len(got.Commits) != 1 || got.WIP == "" {
				t.Errorf("%+v", got)
			}
			if run.tree.MayRetryImport() {
				t.Error("it still waits")
			}
			if _, err := run.tree.Sandbox(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := run.tree.Import(t.Context(), in); err == nil {
					t.Fatal("imported")
				}
				now = now.Add(7 * 24 * time.Hour)
			}
			if _, err := run.tree.Import(t.Context(), in); err == nil {
				t.Fatal("imported")
			}
			if err := run.tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) || !strings.Contains(err.Error(), f.repo.statePath("kept")) {
				t.Errorf("after weeks: %v", err)
			}
		})
	}
}

// If the sandbox could make no tree of the files, the worktree does not count as unchanged.
func TestNoTreeOfTheFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.private("k", "r1")
	run.sh("echo work >done; git add done; git commit -qm work; echo draft >draft")
	bin := t.TempDir()
	real := f.sh("", "sh", "-c", "command -v git")
	script := "#!/bin/sh\n[ \"$1\" != write-tree ] || { echo 'fatal: unable to write: No space left on device' >&2; exit 128; }\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	broken := func(ctx context.Context, c Command) (int, error) {
		c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		return boxed(run.tree)(ctx, c)
	}
	got, err := run.tree.Import(t.Context(), broken)
	if err == nil || len(got.Commits) != 1 || !run.tree.Unsaved() || !run.tree.MayRetryImport() {
		t.Errorf("%+v, %v, unsaved %v, waits %v", got, err, run.tree.Unsaved(), run.tree.MayRetryImport())
	}
	if got := f.imported(run.tree); got.WIP == "" {
		t.Errorf("%+v", got)
	}
}
