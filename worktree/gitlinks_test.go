package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// A nested repository that was committed as a gitlink is found, and its files outlive the worktree.
func TestNestedRepositoryIsRescued(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	sub := filepath.Join(tree.Dir(), "deep", "sub")
	f.sh("", "git", "init", "-q", sub)
	f.commit(sub, "a.txt", "precious\n", "Inside")
	f.sh(tree.Dir(), "git", "add", "deep")
	f.sh(tree.Dir(), "git", "commit", "-qm", "Outside")
	got := f.handBack(tree)
	links, err := tree.Gitlinks(t.Context(), got)
	if err != nil || len(links) != 1 || links[0] != "deep/sub" {
		t.Fatalf("%q, %v", links, err)
	}
	kept, err := tree.Rescue(links)
	if err != nil {
		t.Fatal(err)
	}
	f.remove(tree)
	if b, err := os.ReadFile(filepath.Join(kept, "deep", "sub", "a.txt")); err != nil || string(b) != "precious\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A submodule that is declared is no find, and a link out of the worktree is not followed.
func TestRescueStaysInside(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("k", "r")
	outside := t.TempDir()
	if err := os.Mkdir(filepath.Join(outside, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(tree.Dir(), "deep")); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Rescue([]string{"deep/sub", "../x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "sub")); err != nil {
		t.Error("a folder outside was moved")
	}
	f.commit(tree.Dir(), ".gitmodules", "[submodule \"s\"]\n\tpath = s\n\turl = ./s\n", "Declare")
	f.sh(tree.Dir(), "git", "update-index", "--add", "--cacheinfo", "160000,"+f.git("rev-parse", "HEAD")+",s")
	f.sh(tree.Dir(), "git", "commit", "-qm", "Submodule")
	got := f.handBack(tree)
	if links, err := tree.Gitlinks(t.Context(), got); err != nil || len(links) != 0 {
		t.Errorf("%q, %v", links, err)
	}
}
