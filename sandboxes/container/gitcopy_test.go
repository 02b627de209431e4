package container_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/mirror"
	"github.com/ralph-pool/ralph/worktree"
)

// project is a user's repository with one worktree of ralph's.
type project struct {
	*testing.T
	dir  string
	repo *worktree.Repo
	tree *worktree.Tree
	spec sandboxes.Spec
}

func newProject(t *testing.T, name string) *project {
	t.Helper()
	base, err := filepath.EvalSymlinks(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	f := &project{T: t, dir: filepath.Join(base, "project")}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", f.dir},
		{"-C", f.dir, "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		f.git(args...)
	}
	f.write("a.txt", "one\n")
	f.write(".gitignore", "ignored\n.env\n")
	if err := os.Symlink("/etc/hostname", filepath.Join(f.dir, "absolute")); err != nil {
		t.Fatal(err)
	}
	f.write(".env", "COPIED=1\n")
	f.git("-C", f.dir, "add", ".")
	f.git("-C", f.dir, "commit", "-q", "-m", "second")
	f.git("-C", f.dir, "branch", "other")
	if f.repo, err = worktree.Open(t.Context(), f.dir, worktree.Options{StateDir: filepath.Join(base, "state")}); err != nil {
		t.Fatal(err)
	}
	onto, err := f.repo.Base(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	f.tree, err = f.repo.Add(t.Context(), worktree.Spec{Run: name + "-" + filepath.Base(filepath.Dir(base)), Key: "42", Branch: "ralph/42", Base: onto})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.tree.CopyIn(t.Context(), []string{".env"}); err != nil {
		t.Fatal(err)
	}
	private, err := f.tree.Private(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pack, err := f.tree.Pack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.spec = sandboxes.Spec{Run: f.tree.Spec().Run, Worktree: f.tree.Dir(), GitDir: private.Dir, Pack: pack}
	if os.Getuid() == 0 { // who has the worktree is who commands run as
		if err := os.Chown(f.tree.Dir(), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *project) git(args ...string) string {
	f.Helper()
	var out bytes.Buffer
	c := exec.Command("git", args...)
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.invalid", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.invalid")
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		f.Fatalf("git %q: %v\n%s", args, err, &out)
	}
	return strings.TrimSpace(out.String())
}

func (f *project) write(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *project) handBack() worktree.HandBack {
	f.Helper()
	h, err := f.tree.HandBack(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return h
}

// copies runs a test on the engines that copy files.
func copies(t *testing.T, test func(t *testing.T, name string, r rig)) {
	t.Parallel()
	for _, name := range []string{"docker" + copying, "runsc" + copying, "podman" + copying} {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			test(t, name, rigs()[name])
		})
	}
}

// An agent with a copy works as one with a mount: what it commits and leaves comes back, checked.
func TestGitOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		f := newProject(t, "git-"+name)
		box := enter(t, container.New(r.engine, r.config(t)), f.spec)
		if got, _ := inside(t, box, "git status --porcelain --branch; cat .env; readlink absolute; git log --format=%s; git for-each-ref --format='%(refname)'; git fsck 2>&1"); got !=
			"## ralph/42\nCOPIED=1\n/etc/hostname\nsecond\nfirst\nrefs/heads/main\nrefs/heads/ralph/42" {
			t.Errorf("inside there is\n%s", got)
		}
		first, _ := inside(t, box, "echo b >b.txt; git add b.txt; git commit -qm 'add b'; git rev-parse HEAD")
		if _, exit := inside(t, box, "echo two >a.txt; mkdir dir; echo new >dir/new; rm .gitignore; chmod +x b.txt; git add dir"); !exit.OK() {
			t.Fatal(exit)
		}
		got := f.handBack()
		if got.Tip != first || got.New != 1 || got.WIP == "" {
			t.Fatalf("handed back %+v, the commit is %s", got, first)
		}
		if names := f.git("-C", f.dir, "diff", "--name-status", got.Tip, got.WIP); names != "A\t.env\nD\t.gitignore\nM\ta.txt\nM\tb.txt\nA\tdir/new" {
			t.Errorf("saved changes: %s", names)
		}
		// The objects of the user's stay inside when the agent packs its own; and the host sees no difference.
		second, _ := inside(t, box, "git checkout -q .gitignore; git add -A; git commit -qm more; git gc -q --prune=now; git rev-parse HEAD")
		got = f.handBack()
		if got.Tip != second || got.New != 1 || len(got.Commits) != 2 || got.WIP != "" {
			t.Errorf("packed hand-back %+v, the commit is %s", got, second)
		}
		if packs, _ := filepath.Glob(filepath.Join(f.spec.GitDir, "objects/pack/pack-seed.*")); len(packs) > 0 {
			t.Errorf("the user's objects came back: %s", packs)
		}
		// What ralph does to the worktree goes in, with what it needs.
		f.write("c.txt", "on main\n")
		f.git("-C", f.dir, "add", "c.txt")
		f.git("-C", f.dir, "commit", "-q", "-m", "on main")
		onto, err := f.repo.Base(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		tip, err := f.tree.Rebase(t.Context(), onto)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := inside(t, box, "git status --porcelain; cat c.txt; git log --format=%s; git rev-parse HEAD; git fsck 2>&1"); got != "on main\nmore\nadd b\non main\nsecond\nfirst\n"+tip {
			t.Errorf("after the rebase inside there is\n%s", got)
		}
	})
}

// The repository's place inside can be neither removed nor replaced, and nothing that is made of it reaches the host.
func TestGitBoundaryOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		f := newProject(t, "boundary-"+name)
		before, err := os.ReadFile(filepath.Join(f.tree.Dir(), ".git"))
		if err != nil {
			t.Fatal(err)
		}
		box := enter(t, container.New(r.engine, r.config(t)), f.spec)
		for _, attack := range []string{
			"mv .git x", "rmdir .git", "mkdir evil && mv -T evil .git", `mv "$PWD" /tmp/elsewhere`, "echo x >.git",
		} {
			if _, exit := inside(t, box, attack); exit.OK() {
				t.Errorf("%s succeeds", attack)
			}
		}
		if _, exit := inside(t, box, `
			mkdir -p sub/.GIT/hooks .Git "git~1"; echo evil >sub/.GIT/config; echo evil >"git~1/config"
			echo 'echo pwned' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
			git config core.fsmonitor 'touch /tmp/pwned'; ln -s /etc/passwd .git/evil; ln -s .git/config link; ln -s ../../../../etc/passwd out; ln -s a.txt in
			mkfifo pipe; echo /etc >.git/objects/info/alternates; echo kept >kept; mkdir locked; echo x >locked/x; chmod 0 locked; touch secret; chmod 0 secret`); !exit.OK() {
			t.Fatal(exit)
		}
		for path, there := range map[string]bool{
			"kept": true, "in": true, "sub": true, "sub/.GIT": false, ".Git": false, "git~1": false, "link": false, "out": false, "pipe": false, "absolute": true,
		} {
			if _, err := os.Lstat(filepath.Join(f.tree.Dir(), path)); (err == nil) != there {
				t.Errorf("%s on the host: %v", path, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(f.spec.GitDir, "evil")); err == nil {
			t.Error("a link came back into the private repository")
		}
		if text, err := os.ReadFile(filepath.Join(f.tree.Dir(), ".git")); err != nil || !bytes.Equal(text, before) {
			t.Errorf("the worktree's .git is now %q, %v", text, err)
		}
		if left := box.(sandboxes.Copier).Left(); !strings.Contains(left, "of the sandbox's files are not taken; first: ") {
			t.Errorf("what was refused is told as %q", left)
		}
		if got := f.handBack(); got.New != 0 || got.WIP == "" {
			t.Errorf("handed back %+v", got)
		}
	})
}

// What a command has written when its ralph dies is on the host when the next one has cleaned up.
func TestReapBringsFilesOut(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		f := newProject(t, "salvage-"+name)
		c := r.config(t)
		crash{Rig: name, Config: c, Spec: f.spec, Script: `
			echo made >made.txt; git add made.txt; git commit -qm made; echo more >more.txt; echo ready; exec sleep 1000`}.happen(t)
		if err := container.New(r.engine, c).Reap(t.Context(), f.spec.Run); err != nil {
			t.Fatal(err)
		}
		got := f.handBack()
		if got.New != 1 || got.WIP == "" {
			t.Errorf("handed back %+v", got)
		}
		if left := containers(t, r.engine.Name, f.spec.Run) + engineSays(t, r.engine.Name, "volume", "ls", "--quiet", "--filter", "label=ralph.run="+f.spec.Run); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// A command that ends its own sandbox loses nothing that it has written.
func TestBrokenSandboxGivesItsFiles(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		f := newProject(t, "broken-"+name)
		box := enter(t, container.New(r.engine, r.config(t)), f.spec)
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{
			"sh", "-c", "echo made >made.txt; git add made.txt; git commit -qm made; kill -9 $PPID; sleep 100",
		}}); err == nil {
			t.Error("Exec succeeds in a broken sandbox")
		}
		if got := f.handBack(); got.New != 1 {
			t.Errorf("handed back %+v", got)
		}
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"true"}}); err == nil {
			t.Error("the sandbox works on after its helper was killed")
		}
	})
}

// Files without number stop the run and not the clean-up after a crash; commits come out all the same.
func TestTooManyFiles(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		f := newProject(t, "many-"+name)
		p := container.New(r.engine, r.config(t))
		p.SetCopyLimits(mirror.Limits{Entries: 100})
		box, err := p.Open(t.Context(), f.spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{
			"sh", "-c", "echo made >made.txt; git add made.txt; git commit -qm made; mkdir many; cd many; i=0; while [ $i -lt 100 ]; do : >$i; i=$((i+1)); done",
		}})
		if err == nil || !strings.Contains(err.Error(), "the sandbox's files are refused: there are more than 100 files and folders") {
			t.Errorf("error is %v", err)
		}
		if got := f.handBack(); got.New != 1 {
			t.Errorf("handed back %+v", got)
		}
		if err := box.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "its container is kept: look with "+r.engine.Name+" cp ") {
			t.Errorf("Close gives %v", err)
		}
		if err := p.Reap(t.Context(), f.spec.Run); err != nil {
			t.Error(err)
		}
		if left := containers(t, r.engine.Name, f.spec.Run); left != "" {
			t.Errorf("left behind: %s", left)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Errorf("Close after the clean-up: %v", err)
		}
	})
}
