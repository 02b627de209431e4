package worktree

import (
	"strings"
	"testing"
)

// Misuse by a program that embeds ralph gives an error that says what to do instead.
func TestMisuse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := Open(t.Context(), f.dir, Options{StateDir: "state"}); err == nil || !strings.Contains(err.Error(), `state folder "state"`) {
		t.Errorf("a relative state folder: %v", err)
	}
	if _, err := new(Repo).Base(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "not open") {
		t.Errorf("a zero Repo: %v", err)
	}
	tree := f.add("k", "r")
	f.commit(tree.Dir(), "mine", "x", "work")
	f.imported(tree)
	f.remove(tree)
	if _, err := tree.Import(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("an import after Remove: %v", err)
	}
}
