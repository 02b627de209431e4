package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/importer"
)

// A tree whose import fails twice in the same way is set aside, and git finds no repository in its folders: a git command
// there would run programs that the agent has configured.
func TestSetAside(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh(`echo work > done; git add done; git commit -qm work; rm -rf "$GIT_DIR"/objects/??
		env -u GIT_DIR -u GIT_WORK_TREE git init -q deep/repo; env -u GIT_DIR -u GIT_WORK_TREE git init -q --bare bare; ln -s / out
		env -u GIT_DIR -u GIT_WORK_TREE git init -q --bare store; mkdir split; mv store/HEAD split/HEAD; echo ../store >split/commondir
		mkdir -p "$GIT_DIR/modules"; cp -R bare "$GIT_DIR/modules/m"`)
	for try := range 2 {
		if got, err := in.tree.Import(t.Context(), boxed(in.tree)); err == nil || got.Tip != in.tree.Start() {
			t.Fatalf("imported %+v, %v", got, err)
		}
		err := in.tree.Remove(t.Context())
		if !errors.Is(err, ErrUnsaved) || strings.Contains(err.Error(), f.repo.statePath("kept")) != (try == 1) {
			t.Fatalf("removed after %d failures: %v", try+1, err)
		}
		if aside, ok := errors.AsType[*SetAsideError](err); ok != (try == 1) || ok && (filepath.Dir(aside.Dir) != f.repo.statePath("kept") || aside.Cause == "") {
			t.Errorf("after %d failures: %+v", try+1, aside)
		}
		if strings.Contains(err.Error(), in.tree.Dir()) {
			t.Errorf("the caller knows the folder: %v", err)
		}
	}
	kept, err := filepath.Glob(f.repo.statePath("kept", "*"))
	if err != nil || len(kept) != 1 || f.read(kept[0], "files", "done") != "work\n" {
		t.Fatalf("kept %q, %v", kept, err)
	}
	for _, dir := range []string{"files", "files/deep/repo", "files/bare", "files/split", "repository", "repository/modules/m"} {
		if out, err := f.try(filepath.Join(kept[0], dir), "git", "status"); err == nil || !strings.Contains(out, "not a git repository") {
			t.Errorf("git works in %s: %s", dir, out)
		}
	}
	if _, err := os.Lstat(filepath.Join(kept[0], "files", "out")); err != nil {
		t.Error(err)
	}
	f.remove(in.tree) // removing again is not an error
	f.add("k", "r2")
}

// A tree that a person has given up is set aside, though its next import might succeed. One without unsaved work is removed.
func TestSetAsideForAPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh("echo work > done")
	_, err := in.tree.Import(t.Context(), func(context.Context, Command) (int, error) { return 0, importer.ErrInside })
	if err == nil || !in.tree.MayRetryImport() {
		t.Fatalf("imported: %v", err)
	}
	aside, ok := errors.AsType[*SetAsideError](in.tree.SetAside(t.Context(), errors.New("given up")))
	if !ok || f.read(aside.Dir, "files", "done") != "work\n" {
		t.Fatalf("set aside: %+v", aside)
	}
	imported := f.add("k", "r2")
	f.imported(imported)
	if err := imported.SetAside(t.Context(), errors.New("given up")); err != nil {
		t.Error(err)
	}
	if trees, err := f.repo.Trees(t.Context()); err != nil || len(trees) > 0 {
		t.Errorf("left: %v, %v", trees, err)
	}
}

// After an import that took too long, the tree is set aside at once: the next import would not end either.
func TestSetAsideAfterALateImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	late := func(context.Context, Command) (int, error) { return 0, ErrLate }
	if _, err := in.tree.Import(t.Context(), late); !errors.Is(err, ErrLate) {
		t.Fatal(err)
	}
	if err := in.tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) || !strings.Contains(err.Error(), f.repo.statePath("kept")) {
		t.Errorf("removed: %v", err)
	}
	f.add("k", "r2")
}

// A detached tree is a checkout of a commit. Nothing is imported from it.
func TestDetached(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		f := newFixture(t)
		run := f.add("k", "r1")
		tip := f.commit(run.Dir(), "b", "x", "work")
		f.imported(run)
		spec := Spec{Run: "r1", Key: "k", Base: Base{Commit: tip}, Private: private, Detached: true}
		tree, second := f.addSpec(spec), f.addSpec(spec)
		if tree.Dir() == second.Dir() || f.read(tree.Dir(), "b") != "x" {
			t.Errorf("private %v: %s and %s", private, tree.Dir(), second.Dir())
		}
		f.write(tree.Dir(), "junk", "x")
		if _, err := tree.Import(t.Context(), boxed(tree)); err == nil || tree.Unsaved() {
			t.Errorf("private %v: imported", private)
		}
		f.remove(tree)
		next := f.add("k", "r2") // after a crash, the leftovers of the other tree are removed with the run
		if next.Start() != tip {
			t.Errorf("private %v: the run starts at %s", private, next.Start())
		}
		f.remove(second)
		f.imported(next)
		f.remove(next)
		f.clean()
	}
}

// A worktree that stays because its import has failed once is no repository to git, whatever the agent has done to its
// .git: the report names this folder.
func TestKeptTreeRunsNothing(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"as it was": `true`,
		"folder":    `rm -f .git; env -u GIT_DIR -u GIT_WORK_TREE git init -q .; git --git-dir=.git config core.fsmonitor "$PWD/evil"`,
		"file":      `rm -f .git; env -u GIT_DIR -u GIT_WORK_TREE git init -q own; git --git-dir=own/.git config core.fsmonitor "$PWD/evil"; echo "gitdir: own/.git" >.git`,
		"bare":      `rm -f .git; env -u GIT_DIR -u GIT_WORK_TREE git init -q --bare .; git --git-dir=. config core.fsmonitor "$PWD/evil"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			in.sh(`echo work > done; git add done; git commit -qm work; printf '#!/bin/sh\ntouch "%s/ran"\n' "$PWD" > evil; chmod +x evil
				rm -rf "$GIT_DIR"/objects/??; ` + script)
			if _, err := in.tree.Import(t.Context(), boxed(in.tree)); err == nil {
				t.Fatal("imported")
			}
			if err := in.tree.Remove(t.Context()); !errors.Is(err, ErrUnsaved) {
				t.Fatal(err)
			}
			if out, err := f.try(in.tree.Dir(), "git", "status"); err == nil {
				t.Errorf("git works: %s", out)
			}
			if _, err := os.Lstat(filepath.Join(in.tree.Dir(), "ran")); err == nil {
				t.Error("git has run the agent's program")
			}
		})
	}
}
