package worktree

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reopened returns the tree of the only run, as the next process reads it.
func (f *fixture) reopened() *Tree {
	f.Helper()
	trees, err := f.open(Options{}).Trees(f.Context())
	if err != nil || len(trees) != 1 {
		f.Fatalf("%d trees, %v", len(trees), err)
	}
	return trees[0]
}

// The existing part of a run's work is imported, whichever of the folders around its files was deleted.
func TestLostFolders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost   []string
		sparse bool
		saved  string // the saved files that differ from the last import
		tip    bool   // the last commit is imported
	}{
		"history":            {lost: []string{"history"}, tip: true, saved: "draft"},
		"given":              {lost: []string{"given"}, tip: true, saved: "draft"},
		"history and given":  {lost: []string{"history", "given"}, tip: true, saved: "draft"},
		"repository":         {lost: []string{"repos"}, saved: "draft\nlast"},
		"all of them":        {lost: []string{"history", "given", "repos"}, saved: "draft\nlast"},
		"repository, sparse": {lost: []string{"repos"}, sparse: true, saved: "draft\nlast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if test.sparse {
				f.commit(f.dir, "in/file", "x", "in")
				f.commit(f.dir, "out/file", "x", "out")
				f.git("sparse-checkout", "set", "in")
			}
			run := f.private("k", "r1")
			run.sh("echo one >first; git add first; git commit -qm first")
			first := f.imported(run.tree).Tip
			f.use(run.tree)
			last := run.sh("echo two >last; git add last; git commit -qm last; echo draft >draft; git rev-parse HEAD")
			for _, folder := range test.lost {
				if err := os.RemoveAll(f.repo.statePath(folder)); err != nil {
					t.Fatal(err)
				}
			}
			tree := f.reopened()
			var log bytes.Buffer
			tree.repo.log = slog.New(slog.NewTextHandler(&log, nil))
			f.use(tree)
			got := f.imported(tree)
			want := first
			if test.tip {
				want = last
			}
			if got.Tip != want {
				t.Errorf("tip %s, want %s", got.Tip, want)
			}
			if saved := f.git("diff", "--name-only", got.Tip, got.WIP); saved != test.saved {
				t.Errorf("saved %q, want %q", saved, test.saved)
			}
			if said := strings.Count(log.String(), "are lost"); (said == 1) == test.tip {
				t.Errorf("said of lost commits: %s", log.String())
			}
			f.remove(tree)
			if out, err := f.try(f.dir, "git", "fsck"); err != nil {
				t.Errorf("fsck: %s", out)
			}
		})
	}
}

// Folders that are deleted while ralph runs are made again, for the present run and for the next one.
func TestLostFoldersWhileOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.private("k", "r1")
	run.sh("echo one >first; git add first; git commit -qm first")
	for _, folder := range []string{"history", "given"} {
		if err := os.RemoveAll(f.repo.statePath(folder)); err != nil {
			t.Fatal(err)
		}
	}
	f.use(run.tree)
	if got := f.imported(run.tree); got.New != 1 {
		t.Errorf("%+v", got)
	}
	if err := os.RemoveAll(f.repo.statePath("history")); err != nil {
		t.Fatal(err)
	}
	f.private("other", "r2")
}

// Without the history an import is impossible: the files are set aside, and the issue is free.
func TestLostHistoryOfALostBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.private("k", "r1")
	run.sh("echo one >first; git add first; git commit -qm first")
	base := f.base().Commit
	if err := os.RemoveAll(f.repo.statePath("history")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(f.dir, ".git", "objects", base[:2], base[2:])); err != nil {
		t.Fatal(err)
	}
	tree := f.reopened()
	if _, err := tree.Sandbox(t.Context()); err == nil {
		t.Error("the sandbox may open")
	}
	if tree.MayRetryImport() {
		t.Error("it waits")
	}
	if err := tree.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), f.repo.statePath("kept")) {
		t.Error(err)
	}
}
