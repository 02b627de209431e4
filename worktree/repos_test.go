package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func isErr(err, target error) bool { return errors.Is(err, target) }

// TestKindsOfRepository works an issue in every kind of repository.
func TestKindsOfRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) *fixture{
		"spaces and non-ASCII": func(t *testing.T) *fixture {
			return fixtureAt(t, filepath.Join(realDir(t), "mein Prüf-Projekt 'x' [a]"))
		},
		"sparse checkout": func(t *testing.T) *fixture {
			f := newFixture(t)
			f.commit(f.dir, "in/a", "x", "in")
			f.commit(f.dir, "out/b", "x", "out")
			f.git("sparse-checkout", "set", "in")
			return f
		},
		"worktree configuration": func(t *testing.T) *fixture {
			f := newFixture(t)
			f.git("config", "extensions.worktreeConfig", "true")
			f.git("config", "--worktree", "user.name", "Grace")
			return f
		},
		"clean and smudge filters": func(t *testing.T) *fixture {
			f := newFixture(t)
			f.git("config", "filter.rot.clean", "tr a-z n-za-m")
			f.git("config", "filter.rot.smudge", "tr a-z n-za-m")
			f.git("config", "filter.rot.required", "true")
			f.commit(f.dir, ".gitattributes", "*.rot filter=rot\n", "attributes")
			f.commit(f.dir, "x.rot", "hello", "rot")
			return f
		},
		"submodule": func(t *testing.T) *fixture {
			sub, f := newFixture(t), newFixture(t)
			f.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.dir, "sub")
			f.git("commit", "-q", "-m", "submodule")
			return f
		},
		"shallow clone": func(t *testing.T) *fixture {
			from := newFixture(t)
			from.commit(from.dir, "b", "x", "second")
			f := &fixture{T: t, dir: filepath.Join(realDir(t), "clone"), state: filepath.Join(realDir(t), "state")}
			f.sh("", "git", "clone", "-q", "--depth=1", "file://"+from.dir, f.dir)
			f.open(Options{})
			return f
		},
		"sha256": func(t *testing.T) *fixture {
			f := &fixture{T: t, dir: filepath.Join(realDir(t), "new"), state: filepath.Join(realDir(t), "state")}
			f.sh("", "git", "init", "-q", "-b", "main", "--object-format=sha256", f.dir)
			f.commit(f.dir, ".gitignore", "ignored/\n", "first")
			f.open(Options{})
			return f
		},
		"linked worktree of the user": func(t *testing.T) *fixture {
			f := newFixture(t)
			linked := filepath.Join(realDir(t), "linked")
			f.git("worktree", "add", "-q", "-b", "side", linked)
			f.dir = linked
			f.open(Options{})
			return f
		},
		"packed refs": func(t *testing.T) *fixture {
			f := newFixture(t)
			f.git("pack-refs", "--all")
			f.git("gc", "-q")
			return f
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := make(t)
			ctx := context.Background()
			c, err := f.repo.Claim(ctx, "k", Holder{Owner: "o", Run: "r1"}, claimTTL)
			if err != nil {
				t.Fatal(err)
			}
			tree := f.add("k", "r1")
			if dirty := f.sh(tree.Dir(), "git", "status", "--porcelain"); dirty != "" {
				t.Errorf("the new worktree is not clean:\n%s", dirty)
			}
			tip := f.commit(tree.Dir(), "in/new.rot", "hello", "work")
			f.write(tree.Dir(), "in/wip.rot", "hello")
			got := f.imported(tree)
			if got.Tip != tip || len(got.Commits) != 1 || got.WIP == "" {
				t.Errorf("imported %+v", got)
			}
			if blob := f.show(got.WIP, "in/wip.rot"); blob != f.show(tip, "in/new.rot") {
				t.Errorf("saved as %q, committed as %q", blob, f.show(tip, "in/new.rot"))
			}
			f.remove(tree)
			if err := c.Release(ctx); err != nil {
				t.Error(err)
			}
			_, err = f.repo.Merge(ctx, f.base(), tip, "merge")
			if filtered := name == "clean and smudge filters"; errors.Is(err, ErrFiltered) != filtered || err != nil && !filtered {
				t.Error(err)
			}
			f.git("fsck", "--strict")
		})
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	if err := os.MkdirAll(filepath.Join(f.dir, "deep", "er"), 0o755); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(realDir(t), "linked")
	f.git("worktree", "add", "-q", linked)
	link := filepath.Join(realDir(t), "link")
	if err := os.Symlink(f.dir, link); err != nil {
		t.Fatal(err)
	}
	root := realDir(t)
	state := func(p Location) string {
		dir, err := StateDir(ctx, root, p)
		if err != nil {
			t.Error(err)
		}
		return dir
	}
	place, err := Locate(ctx, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := state(place)
	if !strings.HasPrefix(want, root+"/project-") {
		t.Errorf("state folder is %s", want)
	}
	for dir, wantTop := range map[string]string{filepath.Join(f.dir, "deep", "er"): f.dir, linked: linked, link: f.dir} {
		if p, err := Locate(ctx, dir); err != nil || p.Top != wantTop || state(p) != want {
			t.Errorf("Locate(%s) = %+v, %v", dir, p, err)
		}
	}
}

// After a repository was moved during runs, ralph continues their work.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		f := newFixture(t)
		tree := f.workIn("k", "r1", private, "echo x >done; git add done; git commit -qm work; echo y >draft")
		moved := filepath.Join(realDir(t), "moved")
		f.sh("", "mv", f.dir, moved)
		f.dir = moved
		f.open(Options{})
		trees, err := f.repo.Trees(t.Context())
		if err != nil || len(trees) != 1 {
			t.Fatal(trees, err)
		}
		got := f.imported(trees[0])
		if f.show(got.Tip, "done") != "x" || f.show(got.WIP, "draft") != "y" {
			t.Errorf("private %v: imported %+v from %s", private, got, tree.Dir())
		}
		f.remove(trees[0])
		next := f.workIn("k", "r2", private, "cat done")
		f.imported(next)
		f.remove(next)
		f.clean()
	}
}

// A sweep that meets a repository which was moved meanwhile leaves the work where the next sweep imports it.
func TestRepositoryThatMovesDuringASweep(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		f := newFixture(t)
		tree := f.workIn("k", "r1", private, "echo x >done; git add done; git commit -qm work")
		var in Inside
		if private {
			in = boxed(tree)
		}
		moved := filepath.Join(realDir(t), "moved")
		f.sh("", "mv", f.dir, moved)
		for range 5 {
			_, err := tree.Import(t.Context(), in)
			t.Log(err)
			if errRemove := tree.Remove(t.Context()); err == nil || !errors.Is(errRemove, ErrUnsaved) {
				t.Errorf("private %v: imported: %v, removed: %v", private, err, errRemove)
			}
		}
		if kept, err := filepath.Glob(f.repo.statePath("kept", "*")); err != nil || len(kept) > 0 {
			t.Fatalf("private %v: kept %q, %v", private, kept, err)
		}
		f.dir = moved
		f.open(Options{})
		trees, err := f.repo.Trees(t.Context())
		if err != nil || len(trees) != 1 {
			t.Fatal(trees, err)
		}
		if got := f.imported(trees[0]); f.show(got.Tip, "done") != "x" {
			t.Errorf("private %v: imported %+v", private, got)
		}
		f.remove(trees[0])
		f.clean()
	}
}

func TestNoRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	empty, bare, file := realDir(t), filepath.Join(realDir(t), "bare.git"), filepath.Join(f.dir, "a.txt")
	f.sh("", "git", "init", "-q", "--bare", bare)
	for dir, want := range map[string]string{
		empty:                         fmt.Sprintf("%s is not in a git repository; make one with: git init %s", empty, empty),
		bare:                          fmt.Sprintf("%s is a bare repository; ralph needs a checkout, make one with: git clone %s", bare, bare),
		file:                          fmt.Sprintf("repository: %s is not a folder", file),
		filepath.Join(f.dir, ".git"):  fmt.Sprintf("%s/.git is inside a git directory, not a checkout; use its parent: %s", f.dir, f.dir),
		filepath.Join(empty, "never"): fmt.Sprintf("repository: stat %s/never: no such file or directory", empty),
	} {
		if _, err := Locate(context.Background(), dir); err == nil || err.Error() != want {
			t.Errorf("Locate(%s):\n got %v\nwant %s", dir, err, want)
		}
	}
}

func TestForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		// Only root can give files away; then root itself is the other user.
		return
	}
	f := newFixture(t)
	f.sh("", "chown", "-R", "12345", f.dir)
	want := fmt.Sprintf("%s belongs to another user; to trust it: git config --global --add safe.directory %s", f.dir, f.dir)
	if _, err := Locate(context.Background(), f.dir); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	head := f.git("rev-parse", "HEAD")
	f.git("tag", "-a", "-m", "t", "v1")
	f.git("tag", "main")
	f.git("update-ref", "refs/remotes/origin/main", head)
	for ref, want := range map[string]Base{
		"":                {Name: "main", Ref: "refs/heads/main", Commit: head},
		"main":            {Name: "main", Ref: "refs/heads/main", Commit: head},
		"refs/heads/main": {Name: "main", Ref: "refs/heads/main", Commit: head},
		"v1":              {Name: "v1", Ref: "refs/tags/v1", Commit: head},
		"origin/main":     {Name: "origin/main", Ref: "refs/remotes/origin/main", Commit: head},
		head[:10]:         {Name: head[:10], Commit: head},
		"HEAD":            {Name: "HEAD", Commit: head},
	} {
		if got, err := f.repo.Base(ctx, ref); err != nil || got != want {
			t.Errorf("Base(%q) = %+v, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"nope", "--all", "a..b", "main:a.txt"} {
		if got, err := f.repo.Base(ctx, ref); err == nil {
			t.Errorf("Base(%q) = %+v", ref, got)
		}
	}
	f.git("checkout", "-q", "--detach")
	if _, err := f.repo.Base(ctx, ""); !errors.Is(err, ErrNoBase) {
		t.Errorf("detached: %v", err)
	}
}

func TestUnborn(t *testing.T) {
	t.Parallel()
	f := &fixture{T: t, dir: filepath.Join(realDir(t), "new"), state: filepath.Join(realDir(t), "state")}
	f.sh("", "git", "init", "-q", "-b", "main", f.dir)
	f.open(Options{})
	_, err := f.repo.Base(context.Background(), "")
	want := fmt.Sprintf("repository %s has no commits yet; make the first with: git -C %[1]s commit --allow-empty -m init", f.dir)
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	f.git("commit", "--allow-empty", "-q", "-m", "init")
	f.imported(f.add("k", "r1"))
}
