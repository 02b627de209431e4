package worktree

import (
	"strings"
	"testing"
)

// A subject as long as the whole message is cut, even if many commits have one.
func TestLongSubject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r1")
	f.write(tree.Dir(), "b.txt", "b\n")
	f.write(f.state, "message", strings.Repeat("word ", 100_000)+"\n")
	f.sh(tree.Dir(), "git", "add", "b.txt")
	f.sh(tree.Dir(), "git", "commit", "-q", "-F", f.state+"/message")
	tip := f.commit(tree.Dir(), "c.txt", "c\n", "second")
	got := f.imported(tree)
	if len(got.Commits) != 2 || got.Tip != tip || got.Commits[1].Subject != "second" {
		t.Fatalf("%d commits, tip %s", len(got.Commits), got.Tip)
	}
	if n := len(got.Commits[0].Subject); n > 2000 {
		t.Errorf("a subject of %d bytes", n)
	}
}
