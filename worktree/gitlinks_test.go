package worktree

import (
	"path/filepath"
	"testing"
)

// A nested repository that was committed is found, and its files are saved with the uncommitted changes. A declared
// submodule is not treated like that.
func TestRepositoryInsideTheRepository(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		f := newFixture(t)
		s := f.spec("k", "r")
		s.Private = private
		tree := f.addSpec(s)
		sh := func(line string) { f.sh(tree.Dir(), "sh", "-ec", line) }
		if private {
			sh = func(line string) { inside{f, tree, f.use(tree)}.sh(line) }
		}
		sub := filepath.Join(tree.Dir(), "deep", "sub")
		f.sh("", "git", "init", "-q", sub)
		f.commit(sub, "a.txt", "precious\n", "Inside")
		sh("git add deep; git commit -qm Outside")
		got := f.imported(tree)
		if len(got.Gitlinks) != 1 || got.Gitlinks[0] != "deep/sub" || got.WIP == "" || f.show(got.WIP, "deep/sub/a.txt") != "precious" {
			t.Errorf("private %v: %+v", private, got)
		}
		sh(`printf '[submodule "s"]\n\tpath = deep/sub\n\turl = ./s\n' > .gitmodules; git add .; git commit -qm Declare`)
		if got := f.imported(tree); len(got.Gitlinks) != 0 || got.WIP != "" {
			t.Errorf("private %v, declared: %+v", private, got)
		}
		f.remove(tree)
	}
}
