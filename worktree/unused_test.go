package worktree

import "testing"

// The branch of a run that has left nothing goes with its worktree, but never a branch of a person, or one with anything on it.
func TestUnusedBranch(t *testing.T) {
	t.Parallel()
	const branch, work = "refs/heads/ralph/k", "refs/ralph/work/k"
	for name, c := range map[string]struct {
		before, during, after func(f *fixture, tree *Tree)
		kept                  bool
	}{
		"nothing":           {},
		"on the remote":     {before: func(f *fixture, _ *Tree) { f.git("push", "-q", f.withRemote(), "main:ralph/k") }},
		"a person's branch": {before: func(f *fixture, _ *Tree) { f.git("branch", "ralph/k") }, kept: true},
		"of an earlier run": {before: func(f *fixture, _ *Tree) {
			tree := f.add("k", "r0")
			f.commit(tree.Dir(), "b", "x", "work")
			f.imported(tree)
			f.remove(tree)
		}, kept: true},
		"commits": {during: func(f *fixture, tree *Tree) { f.commit(tree.Dir(), "b", "x", "work") }, kept: true},
		"changes": {during: func(f *fixture, tree *Tree) { f.write(tree.Dir(), "b", "x") }, kept: true},
		"other commits": {during: func(f *fixture, tree *Tree) {
			f.commit(tree.Dir(), "b", "x", "work")
			f.imported(tree)
			f.use(tree)
			f.sh(tree.Dir(), "git", "reset", "-q", "--hard", "main")
		}, kept: true},
		"moved by a person": {after: func(f *fixture, _ *Tree) {
			f.git("update-ref", branch, f.git("commit-tree", "-p", "main", "-m", "mine", "main^{tree}"))
		}, kept: true},
		"checked out by a person": {after: func(f *fixture, _ *Tree) { f.git("switch", "-q", "ralph/k") }, kept: true},
		"bisected by a person": {after: func(f *fixture, _ *Tree) {
			f.git("switch", "-q", "ralph/k")
			f.git("bisect", "start")
			f.git("switch", "-q", "--detach")
		}, kept: true},
	} {
		for _, isolated := range []bool{false, true} {
			if isolated && c.during != nil { // these use the host's git
				continue
			}
			t.Run(name+map[bool]string{true: "/private"}[isolated], func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				do := func(step func(*fixture, *Tree), tree *Tree) {
					if step != nil {
						step(f, tree)
					}
				}
				do(c.before, nil)
				spec := f.spec("k", "r")
				spec.Private = isolated
				tree := f.addSpec(spec)
				do(c.during, tree)
				f.imported(tree)
				if err := tree.DropUnused(t.Context()); err != nil || f.ref(branch) == "" {
					t.Fatalf("the worktree still exists: %v", err)
				}
				f.remove(tree)
				do(c.after, tree)
				if err := tree.DropUnused(t.Context()); err != nil {
					t.Fatal(err)
				}
				if kept := f.ref(branch) != ""; kept != c.kept || kept != (f.ref(work) != "") {
					t.Errorf("branch %q, work %q", f.ref(branch), f.ref(work))
				}
			})
		}
	}
}
