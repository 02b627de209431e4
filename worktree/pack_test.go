package worktree

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// copied is the private repository as a sandbox gets it that cannot see the user's objects.
func (in inside) copied(pack string) string {
	in.Helper()
	dir := filepath.Join(realDir(in), "copy")
	in.fixture.sh("", "cp", "-a", in.repo.Dir, dir)
	if err := os.Remove(filepath.Join(dir, "objects/info/alternates")); err != nil {
		in.Fatal(err)
	}
	for _, suffix := range []string{".pack", ".idx"} {
		in.fixture.sh("", "cp", pack+suffix, filepath.Join(dir, "objects/pack/pack-seed"+suffix))
	}
	return dir
}

func TestPackHasAllThatIsBorrowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("branch", "secret")
	tree := f.add("42", "r1")
	f.write(tree.Dir(), "staged", "by a host command\n")
	f.sh(tree.Dir(), "git", "add", "staged")
	p, err := tree.Private(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	in := inside{f, tree, p}
	pack, err := tree.Pack(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	dir := in.copied(pack)
	git := func(args ...string) string {
		return f.sh(tree.Dir(), "git", append([]string{"--git-dir=" + dir, "--work-tree=" + tree.Dir()}, args...)...)
	}
	if got := git("fsck", "--strict"); got != "" {
		t.Errorf("fsck says %s", got)
	}
	if got := git("status", "--porcelain") + "\n" + git("show", ":staged") + "\n" + git("log", "--format=%s"); got != "A  staged\nby a host command\nfirst" {
		t.Errorf("the copy has %s", got)
	}

	// A rebase brings what the copy lacks.
	f.commit(f.dir, "b.txt", "b\n", "on main")
	in.sh("git commit -qm staged")
	if _, err := tree.Rebase(context.Background(), f.base()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"packed-refs", "HEAD", "index"} {
		f.sh("", "cp", "-a", filepath.Join(p.Dir, name), filepath.Join(dir, name))
	}
	f.sh("", "rm", "-rf", filepath.Join(dir, "refs/heads"))
	f.sh("", "sh", "-c", "mkdir $2/refs/heads; cp -a $1/objects/. $2/objects/; rm -f $2/objects/info/alternates", "sh", p.Dir, dir)
	if got := git("fsck", "--strict", "--no-dangling") + git("log", "--format=%s"); got != "staged\non main\nfirst" {
		t.Errorf("after the rebase the copy has %s", got)
	}
	if err := tree.DropPrivate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(pack)); err == nil {
		t.Error("the pack outlives the private repository")
	}
}
