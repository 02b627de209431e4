package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/record"
)

func TestLayeredRepository(t *testing.T) {
	t.Parallel()
	privateRepository(newLayered(t))
}

func TestAgentsOverLayer(t *testing.T) {
	t.Parallel()
	agentsWithPrivateGit(t, newLayered)
}

// layers returns the names of the existing layers.
func (f *fixture) layers() []string {
	f.Helper()
	all, err := filepath.Glob(filepath.Join(f.state, "layers", "*-*"))
	if err != nil {
		f.Fatal(err)
	}
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

func (f *fixture) upper(t *Tree) string {
	f.Helper()
	return f.sh(t.Dir(), "sh", "-c", "find . -mindepth 1 -printf '%P %y\\n' | sort")
}

// Trees of a base share a layer, and each has only the files that differ. A base that has moved a little needs no other
// layer.
func TestTreesShareLayer(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	f.write(f.dir, "dir/b", "b\n")
	f.git("add", ".")
	f.git("commit", "-qm", "dir")
	one, two := f.private("one", "r1"), f.private("two", "r2")
	if up := f.upper(one.tree); up != ".git f" {
		t.Errorf("the first tree has\n%s", up)
	}
	first := one.sh("echo agents >a.txt; rm -r dir; git add -A; git commit -qm work; echo draft >draft; git rev-parse HEAD")
	if got := two.sh("cat a.txt dir/b; git status --porcelain"); got != "one\nb" {
		t.Errorf("the second tree is %q", got)
	}
	if got := f.imported(one.tree); got.Tip != first || f.show(got.WIP, "draft") != "draft" {
		t.Errorf("imported %+v", got)
	}
	f.remove(one.tree)
	f.write(f.dir, "new", "new\n")
	f.git("rm", "-q", "a.txt")
	f.git("add", ".")
	f.git("commit", "-qm", "moved")
	three := f.private("three", "r3")
	if up := f.upper(three.tree); up != ".git f\na.txt c\nnew f" {
		t.Errorf("on the moved base the tree has\n%s", up)
	}
	if got := three.sh("cat new dir/b; test ! -e a.txt; git status --porcelain"); got != "new\nb" {
		t.Errorf("on the moved base the tree is %q", got)
	}
	again := f.private("one", "r4") // it continues from the branch
	if got := again.sh("cat a.txt; test ! -e dir; git status --porcelain; git rev-parse HEAD"); got != "agents\n"+first {
		t.Errorf("the next run finds %q", got)
	}
	if got := f.layers(); len(got) != 1 || again.repo.Lower != filepath.Join(f.state, "layers", got[0], "tree") {
		t.Errorf("layers %q, and %s", got, again.repo.Lower)
	}
	for _, in := range []inside{two, three, again} {
		f.imported(in.tree)
		f.remove(in.tree)
	}
	if err := f.repo.PruneLayers(t.Context(), 0); err != nil || len(f.layers()) > 0 {
		t.Errorf("left: %q, %v", f.layers(), err)
	}
	f.clean()
}

// Files that the user asks for in addition to the commit are in the tree before the agent starts.
func TestCopyInOverLayer(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	f.write(f.dir, "ignored/x", "x\n")
	s := f.spec("k", "r1")
	s.Private, s.Layers = true, func(context.Context, string) error { return nil }
	tree, err := f.repo.Add(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.CopyIn(t.Context(), []string{"ignored", "a.txt"}); err != nil {
		t.Fatal(err)
	}
	in := inside{f, tree, f.use(tree)}
	if got := in.sh("cat ignored/x a.txt; git status --porcelain"); got != "x\none" {
		t.Errorf("the tree is %q", got)
	}
	if err := tree.CopyIn(t.Context(), []string{"a.txt"}); err == nil {
		t.Error("the host writes where an agent was")
	}
	f.imported(tree)
	f.remove(tree)
}

// A copied file does not bring back files that the commit has deleted. It is copied to the target of a link in the commit.
func TestCopyInAmongChanges(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	for _, name := range []string{"vendor/old", "config/old", "deep/config/old", "shared/file"} {
		f.write(f.dir, name, "x\n")
	}
	f.sh(f.dir, "sh", "-c", "ln -s shared link; ln -s ../link deep/link; ln -s shared moved")
	f.git("add", ".")
	f.git("commit", "-qm", "layer")
	first := f.private("first", "r0")
	f.git("rm", "-qr", "vendor", "config", "deep/config", "moved")
	f.write(f.dir, ".gitignore", "vendor\nconfig\nlocal\n")
	f.write(f.dir, "moved/file", "x\n")
	f.git("add", ".")
	f.git("commit", "-qm", "base")
	for _, name := range []string{"vendor/new", "config/local", "deep/config/more/local", "shared/local", "shared/more/local", "moved/local"} {
		f.write(f.dir, name, "x\n")
	}
	s := f.spec("k", "r1")
	s.Private, s.Layers = true, func(context.Context, string) error { return nil }
	tree, err := f.repo.Add(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"vendor", "config/local", "deep/config/more/local", "link/local", "deep/link/more/local", "moved/local"}
	if err := tree.CopyIn(t.Context(), paths); err != nil {
		t.Fatal(err)
	}
	in := inside{f, tree, f.use(tree)}
	const want = `a.txt
config/local
deep/config/more/local
deep/link
link
moved/file
moved/local
shared/file
shared/local
shared/more/local
vendor/new`
	if got := in.sh("find * ! -type d | sort; git status --porcelain"); got != want || in.repo.Lower != first.repo.Lower {
		t.Errorf("the tree over %s is\n%s", in.repo.Lower, got)
	}
	for _, in := range []inside{first, in} {
		f.imported(in.tree)
		f.remove(in.tree)
	}
}

// A link that an agent has committed redirects a copied file, as in a checkout. It does not choose the file.
func TestCopyInThroughLink(t *testing.T) {
	t.Parallel()
	for _, layered := range []bool{false, true} {
		f := newLayered(t)
		f.write(f.dir, "app/file", "x\n")
		f.write(f.dir, "other/file", "x\n")
		f.git("add", ".")
		f.git("commit", "-qm", "base")
		f.write(f.dir, "app/local", "app\n")
		f.write(f.dir, "other/local", "secret\n")
		in := f.private("k", "r1")
		in.sh("git rm -qr app; ln -s other app; git add app; git commit -qm link")
		f.imported(in.tree)
		f.remove(in.tree)
		s := f.spec("k", "r2")
		if s.Private = true; layered {
			s.Layers = func(context.Context, string) error { return nil }
		}
		tree, err := f.repo.Add(t.Context(), s)
		if err != nil || tree.Layered() != layered {
			t.Fatalf("layered %t, %v", tree.Layered(), err)
		}
		if err := tree.CopyIn(t.Context(), []string{"app/local"}); err != nil {
			t.Fatal(err)
		}
		in = inside{f, tree, f.use(tree)}
		if got := in.sh("cat app/local other/local"); got != "app\napp" {
			t.Errorf("layered %t: the tree has %q", layered, got)
		}
		f.imported(tree)
		f.remove(tree)
	}
}

// A tree whose commits the host has replaced is made anew, over a layer again.
func TestRenewedOverLayer(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	in := f.private("k", "r1")
	in.sh("echo x >done; git add -A; git commit -qm work")
	f.imported(in.tree)
	f.write(f.dir, "new", "new\n")
	f.git("add", ".")
	f.git("commit", "-qm", "moved")
	got, err := in.tree.Rebase(t.Context(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	in.repo = f.use(in.tree)
	if out := in.sh("cat new done; git status --porcelain; git rev-parse HEAD"); out != "new\nx\n"+got || in.repo.Lower == "" {
		t.Errorf("after a rebase the tree is %q, over %q", out, in.repo.Lower)
	}
	f.imported(in.tree)
	f.remove(in.tree)
	f.clean()
}

// After a crash at any point while a tree is made, the next run of the key works, and no trace of the dead process is left.
func TestCrashesAroundLayer(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(f *fixture, in inside){
		"half a layer": func(f *fixture, in inside) {
			dead := filepath.Join(f.state, "tmp", f.repo.self.Host, "1.dead")
			f.sh("", "mkdir", "-p", dead)
			f.sh("", "mv", filepath.Dir(in.repo.Lower), dead+"/layer-x")
			f.sh("", "rm", "-r", dead+"/layer-x/index", in.tree.privateDir()+"/index")
			f.half(in.tree)
		},
		"a layer that no record names": func(f *fixture, in inside) {
			f.sh("", "rm", in.tree.privateDir()+"/index")
			f.half(in.tree)
			if err := in.tree.updateRecord(func(rec *record.Record) { rec.Layer = "" }); err != nil {
				f.Fatal(err)
			}
		},
		"a record without an upper folder": func(f *fixture, in inside) {
			f.sh("", "rm", "-r", in.tree.privateDir()+"/index", in.tree.folder())
			f.half(in.tree)
		},
		"half of what differs": func(f *fixture, in inside) {
			f.sh("", "mv", in.tree.privateDir()+"/index", in.tree.privateDir()+"/index.part")
			f.half(in.tree)
		},
		"removed all but the record": func(f *fixture, in inside) {
			f.sh("", "rm", "-r", in.tree.folder())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newLayered(t)
			crash(f, f.private("k", "r1"))
			f.open(Options{})
			left, err := f.repo.Leftovers(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range left {
				if _, err := l.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
			next := f.private("k", "r2")
			if got := next.sh("cat a.txt; git status --porcelain"); got != "one" {
				t.Errorf("the next tree is %q", got)
			}
			f.imported(next.tree)
			f.remove(next.tree)
			if got := f.layers(); len(got) != 1 {
				t.Errorf("layers %q", got)
			}
			f.clean()
			if err := f.repo.PruneLayers(t.Context(), 0); err != nil || len(f.layers()) > 0 {
				t.Errorf("left: %q, %v", f.layers(), err)
			}
		})
	}
}

// A tree whose layer was removed cannot be shown to a sandbox: it is set aside, and the key is free.
func TestLayerIsGone(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	in := f.private("k", "r1")
	in.sh("echo draft >draft")
	f.sh("", "rm", "-r", filepath.Join(f.state, "layers"))
	f.open(Options{})
	trees, err := f.repo.Trees(t.Context())
	if err != nil || len(trees) != 1 {
		t.Fatal(trees, err)
	}
	if _, err := trees[0].Sandbox(t.Context()); err == nil || !strings.Contains(err.Error(), "the lower files of the worktree's overlay are missing") {
		t.Errorf("prepared for a sandbox: %v", err)
	}
	err = trees[0].Remove(t.Context())
	if !errors.Is(err, ErrUnsaved) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "overlay are missing") || !strings.Contains(err.Error(), "; its files that differ from ") {
		t.Errorf("removed: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(f.state, "kept", "*", "files", "draft"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept: %q, %v", kept, err)
	}
	f.clean()
	next := f.private("k", "r2")
	if got := next.sh("cat a.txt"); got != "one" {
		t.Errorf("the next tree is %q", got)
	}
}

// Files that an agent leaves in the upper folder can be set aside and removed, and hide nothing from a person.
func TestClosedUpperFolder(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	in := f.private("k", "r1")
	in.sh("mkdir closed; echo x >closed/x; chmod 0 closed; rm a.txt; ln -s / root; mkfifo pipe")
	if err := in.tree.setAside(errors.New("a test")); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(f.state, "kept", "*", "files", "closed", "x"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept: %q, %v", kept, err)
	}
	f.clean()
	in = f.private("k", "r2")
	in.sh("mkdir closed; echo x >closed/x; chmod 0 closed; rm a.txt; ln -s / root; mkfifo pipe")
	if err := in.tree.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clean()
}

// Records name no path outside of the state folder.
func TestLayerInRecord(t *testing.T) {
	t.Parallel()
	f := newLayered(t)
	in := f.private("k", "r1")
	content, err := os.ReadFile(f.repo.records.Path(in.tree.name))
	if err != nil {
		t.Fatal(err)
	}
	name := in.tree.record().Layer
	if rec, err := record.Decode(content); err != nil || rec.Layer != name || name == "" {
		t.Errorf("layer %q, %v", rec.Layer, err)
	}
	for _, bad := range []string{"../" + name, name + "/x", "x", name[:41], "/" + name} {
		if _, err := record.Decode([]byte(strings.Replace(string(content), name, bad, 1))); err == nil {
			t.Errorf("a record names the layer %q", bad)
		}
	}
}
