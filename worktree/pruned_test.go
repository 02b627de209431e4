package worktree

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prune deletes an object, as the user's git does while no ref has it.
func (f *fixture) prune(object string) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.dir, ".git/objects", object[:2], object[2:])); err != nil {
		f.Fatal(err)
	}
}

// If objects of a key's refs are gone, the next run and imports continue without these refs.
func TestPrunedObjects(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(f *fixture, got Import) (object, ref string){
		"uncommitted changes": func(_ *fixture, got Import) (object, ref string) { return got.WIP, "refs/ralph/wip/k" },
		"files of uncommitted changes": func(f *fixture, got Import) (object, ref string) {
			return f.git("rev-parse", got.WIP+":draft"), "refs/ralph/wip/k"
		},
		"commits": func(_ *fixture, got Import) (object, ref string) { return got.Tip, "refs/ralph/work/k" },
		"replaced commits": func(f *fixture, got Import) (object, ref string) {
			f.git("update-ref", "refs/ralph/old/k/x", f.git("commit-tree", "-m", "x", got.Tip+"^{tree}"))
			return f.ref("refs/ralph/old/k/x"), "refs/ralph/old/k/x"
		},
	} {
		for _, private := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				tree := f.workIn("k", "r1", private, "echo x >done; git add done; git commit -qm work; echo y >draft")
				got := f.imported(tree)
				object, ref := lose(f, got)
				f.prune(object)

				var log bytes.Buffer
				f.repo.log = slog.New(slog.NewTextHandler(&log, nil))
				if lost := name == "commits" && !private; !lost { // otherwise the agent has lost them, too
					f.use(tree)
					f.agent(tree, "echo z >more; git add more; git commit -qm more")
					again := f.imported(tree)
					if again.WIP == "" || f.show(again.WIP, "draft") != "y" || f.show(again.Tip, "done") != "x" || f.show(again.Tip, "more") != "z" {
						t.Errorf("imported again: %+v", again)
					}
					f.remove(tree)
					if now := f.ref(ref); now != object { // the import has repaired it
						object = now
						f.prune(object)
					}
				}
				next := f.workIn("k", "r2", private, "echo z >last; git add last; git commit -qm last; echo w >draft")
				if f.ref(ref) == object || !strings.Contains(log.String(), ref) {
					t.Errorf("%s stays; the log says %s", ref, log.String())
				}
				if last := f.imported(next); last.WIP == "" || f.show(last.Tip, "last") != "z" {
					t.Errorf("the next run imports %+v", last)
				}
				f.git("fsck", "--connectivity-only")
			})
		}
	}
}

// The user's git prunes objects of an import before a ref has them: they are fetched again.
func TestPruneDuringAnImport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, "echo x >done; git add done; git commit -qm work; echo y >draft")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, pruned := t.TempDir(), filepath.Join(t.TempDir(), "pruned")
	script := "#!/bin/sh\n'" + real + `' "$@" || exit
case " $* " in *" unpack-objects "*) test -e '` + pruned + `' || { touch '` + pruned + `'; '` + real + `' -C '` + f.dir + `' prune --expire=now; };; esac
`
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	f.repo.git = f.repo.git.With("PATH=" + bin + ":" + os.Getenv("PATH"))
	got := f.imported(tree)
	if _, err := os.Stat(pruned); err != nil {
		t.Fatal(err)
	}
	if len(got.Commits) != 1 || got.WIP == "" || f.show(got.WIP, "draft") != "y" || f.show(got.Tip, "done") != "x" {
		t.Errorf("%+v", got)
	}
	f.git("fsck", "--connectivity-only")
}

// workIn makes a tree and runs a script in it as an agent.
func (f *fixture) workIn(key, run string, private bool, script string) *Tree {
	f.Helper()
	s := f.spec(key, run)
	s.Private = private
	tree := f.addSpec(s)
	f.agent(tree, script)
	return tree
}

func (f *fixture) agent(tree *Tree, script string) {
	f.Helper()
	inside{f, tree, Private{GitDir: tree.gitDir()}}.sh(script)
}
