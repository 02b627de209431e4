package container_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
)

// project is a checkout with a private repository that borrows objects of a user's repository.
type project struct {
	*testing.T
	user string // path of the user's repository
	spec sandboxes.Spec
}

func newProject(t *testing.T, name string) *project {
	t.Helper()
	base, err := filepath.EvalSymlinks(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &project{T: t, user: filepath.Join(base, "user")}
	p.spec = sandboxes.Spec{
		Run: name + "-" + filepath.Base(filepath.Dir(base)), Worktree: filepath.Join(base, "worktree"), GitDir: filepath.Join(base, "private"),
		Objects: []string{filepath.Join(p.user, ".git/objects")}, RequireIsolation: true,
	}
	p.git("init", "-q", "-b", "main", p.user)
	p.write(p.user, "a.txt", "one\n")
	p.write(p.user, ".gitignore", "ignored\n.env\n")
	if err := os.Symlink("/etc/hostname", filepath.Join(p.user, "absolute")); err != nil {
		t.Fatal(err)
	}
	p.git("-C", p.user, "add", ".")
	p.git("-C", p.user, "commit", "-q", "-m", "first")
	p.git("-C", p.user, "gc", "-q")
	p.git("clone", "-q", "--shared", "--separate-git-dir", p.spec.GitDir, p.user, p.spec.Worktree)
	p.write(p.spec.Worktree, ".git", "gitdir: of the host\n")
	p.write(p.spec.Worktree, ".env", "COPIED=1\n")
	if os.Getuid() == 0 { // commands run as the owner of the worktree
		if err := os.Chown(p.spec.Worktree, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *project) git(args ...string) string {
	p.Helper()
	var out bytes.Buffer
	c := exec.Command("git", args...)
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.invalid", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.invalid")
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		p.Fatalf("git %q: %v\n%s", args, err, &out)
	}
	return strings.TrimSpace(out.String())
}

func (p *project) write(dir, name, text string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

// volumes lists the run's volumes.
func (p *project) volumes(engine string) string {
	p.Helper()
	if containers := containers(p.T, engine, p.spec.Run); containers != "" {
		return "container " + containers
	}
	return engineSays(p.T, engine, "volume", "ls", "--quiet", "--filter", "name="+container.VolumePrefix(p.spec.Run))
}

const commit = "git -c user.name=a -c user.email=a@example.invalid commit -qm "

// pack is the script that writes commits to standard output.
const pack = "cd \"$1\" && echo HEAD | git --git-dir=\"$2\" pack-objects --revs --stdout -q --window=0"

// bring imports the sandbox's commits into the user's repository, and returns the tip.
func (p *project) bring(box sandboxes.Sandbox) string {
	p.Helper()
	tip, _ := inside(p.T, box, "git rev-parse HEAD")
	var text, errs bytes.Buffer
	exit, err := box.Exec(p.Context(), sandboxes.Command{
		Argv: []string{"sh", "-c", pack, "sh", p.spec.Worktree, p.spec.GitDir}, Stdout: &text, Stderr: &errs,
	})
	if err != nil || !exit.OK() {
		p.Fatalf("pack: %+v, %v, %s", exit, err, &errs)
	}
	c := exec.Command("git", "-C", p.user, "index-pack", "--strict", "--stdin", "--fix-thin")
	c.Stdin = &text
	if out, err := c.CombinedOutput(); err != nil {
		p.Fatalf("%v: %s", err, out)
	}
	return tip
}

// copies runs a test on the engines that copy files.
func copies(t *testing.T, test func(t *testing.T, name string, r rig)) {
	t.Parallel()
	names := []string{"docker" + copySuffix, "podman" + copySuffix}
	if everything() {
		names = append(names, "runsc"+copySuffix)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			t.Parallel()
			test(t, name, rigs()[name])
		})
	}
}

// An agent works with copied files as with mounted ones: it sees its history, and its commits leave as a pack.
func TestGitOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p := newProject(t, "git-"+name)
		box := enter(t, r.provider(r.config(t)), p.spec)
		if got, _ := inside(t, box, "git status --porcelain --branch | cut -d. -f1; cat .env; readlink absolute; git log --format=%s; git fsck 2>&1"); got !=
			"## main\nCOPIED=1\n/etc/hostname\nfirst" {
			t.Errorf("inside there is\n%s", got)
		}
		if _, exit := inside(t, box, "echo b >b.txt; git add b.txt; "+commit+"'add b'; git gc -q --prune=now; git --git-dir="+p.spec.GitDir+" fsck"); !exit.OK() {
			t.Fatal(exit)
		}
		tip := p.bring(box)
		if got := p.git("-C", p.user, "show", "--format=%s", "--name-status", tip); got != "add b\n\nA\tb.txt" {
			t.Errorf("the commit is %s", got)
		}
		if entries, err := os.ReadDir(p.spec.Worktree); err != nil || len(entries) != 5 {
			t.Errorf("the host's worktree has %v, %v", entries, err)
		}
	})
}

// The repository's mount point inside can be neither removed nor replaced.
func TestGitBoundaryOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p := newProject(t, "boundary-"+name)
		box := enter(t, r.provider(r.config(t)), p.spec)
		for _, attack := range []string{
			"mv .git x", "rmdir .git", "mkdir evil && mv -T evil .git", `mv "$PWD" /tmp/elsewhere`, "echo x >.git", "mv " + p.spec.GitDir + " /tmp/x",
		} {
			if _, exit := inside(t, box, attack); exit.OK() {
				t.Errorf("%s succeeds", attack)
			}
		}
		if got, _ := inside(t, box, "git rev-parse --absolute-git-dir; git config a.b same; git --git-dir="+p.spec.GitDir+" config a.b"); got != p.spec.Worktree+"/.git\nsame" {
			t.Errorf("git inside works in %s", got)
		}
	})
}

// Fetch checks the files that it copies out.
func TestFetchOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p, out := newProject(t, "fetch-"+name), t.TempDir()
		p.spec.Mounts = []sandboxes.Mount{{Host: out, Inside: "/artefacts", Exclusive: true}}
		box := enter(t, r.provider(r.config(t)), p.spec)
		if _, exit := inside(t, box, `mkdir /artefacts/sub; echo new >/artefacts/sub/new; ln -s /etc/passwd /artefacts/out; mkfifo /artefacts/pipe; mkdir sub; echo x >sub/x`); !exit.OK() {
			t.Fatal(exit)
		}
		fetcher, ok := sandboxes.As[sandboxes.Fetcher](box)
		if !ok {
			t.Fatal("the sandbox is no Fetcher")
		}
		root, err := os.OpenRoot(out)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		err = fetcher.Fetch(t.Context(), []string{"/artefacts", "sub/x", "a.txt"}, root, sandboxes.FetchLimits{})
		if refused, ok := errors.AsType[*sandboxes.RefusedError](err); !ok || refused.Count != 1 && refused.Count != 2 { // a tar may leave out pipes
			t.Errorf("error is %v", err)
		}
		got := map[string]string{}
		for _, name := range []string{"sub/new", "sub/x", "a.txt", "out", "pipe"} {
			if text, err := os.ReadFile(filepath.Join(out, name)); err == nil {
				got[name] = string(text)
			}
		}
		if !maps.Equal(got, map[string]string{"sub/new": "new\n", "sub/x": "x\n", "a.txt": "one\n"}) {
			t.Errorf("the host has %q", got)
		}
	})
}

// A killed ralph leaves the files. Another Open of the same run finds them, and Reap removes them.
func TestReopenAfterACrash(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p, c := newProject(t, "reopen-"+name), r.config(t)
		crash{Rig: name, Config: c, Spec: p.spec, Script: `
			echo made >made.txt; git add made.txt; ` + commit + `made; echo more >more.txt; (sleep 1000 &); echo ready; exec sleep 1000`}.happen(t)
		provider := r.provider(c)
		box := enter(t, provider, p.spec)
		tip := p.bring(box)
		if got := p.git("-C", p.user, "log", "--format=%s", tip); got != "made\nfirst" {
			t.Errorf("the log is %s", got)
		}
		if got, _ := inside(t, box, "cat more.txt; ps 2>/dev/null | grep -c '[s]leep 1000'"); got != "more\n0" {
			t.Errorf("inside there is %s", got)
		}
		if err := reaper(t, provider).Reap(t.Context(), p.spec.Run); err != nil {
			t.Fatal(err)
		}
		if left := p.volumes(r.engine.Name); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// If ralph is killed while it copies files in, the copy is discarded: another Open of the run gets all files.
func TestReopenAfterHalfACopy(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p, c := newProject(t, "half-"+name), r.config(t)
		plain := container.New(r.engine, c)
		crash{
			Rig: strings.TrimSuffix(name, copySuffix), Config: c, Spec: sandboxes.Spec{Run: p.spec.Run, Worktree: p.spec.Worktree},
			Fill: "echo half >a.txt; echo x >half.txt; echo ready; exec sleep 1000", Folders: map[string]string{p.spec.Worktree: "worktree"},
		}.happen(t)
		box := enter(t, r.provider(c), p.spec)
		if got, _ := inside(t, box, "cat a.txt; test -e half.txt || echo fresh; git log --format=%s"); got != "one\nfresh\nfirst" {
			t.Errorf("inside there is %s", got)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := p.volumes(plain.Name()); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// A command that ends its own sandbox loses none of its files.
func TestBrokenSandboxKeepsItsFiles(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p, provider := newProject(t, "broken-"+name), r.provider(r.config(t))
		box, err := provider.Open(t.Context(), p.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{
			"sh", "-c", "echo made >made.txt; git add made.txt; " + commit + "made; kill -9 $PPID; sleep 100",
		}}); err == nil {
			t.Error("Exec succeeds in a broken sandbox")
		}
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"true"}}); err == nil {
			t.Error("the sandbox works on after its helper was killed")
		}
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		box, err = provider.Open(t.Context(), p.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.git("-C", p.user, "log", "--format=%s", p.bring(box)); got != "made\nfirst" {
			t.Errorf("the log is %s", got)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := p.volumes(r.engine.Name); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

// A failed Open leaves nothing in the engine.
func TestFailedOpenOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		p, c := newProject(t, "failed-"+name), r.config(t)
		c.Args = []string{"--no-such-flag"}
		if _, err := r.provider(c).Open(t.Context(), p.spec); err == nil {
			t.Fatal("Open succeeds")
		}
		if files, err := os.ReadDir(c.StateDir); p.volumes(r.engine.Name) != "" || err != nil || len(files) > 0 {
			t.Errorf("left behind: %s, %v, %v", p.volumes(r.engine.Name), files, err)
		}
	})
}

// Mounts are copied in. Read-only mounts stay read-only.
func TestMountsOfCopies(t *testing.T) {
	copies(t, func(t *testing.T, name string, r rig) {
		dir := folder(t)
		for path, mode := range map[string]os.FileMode{"d/sub/plain": 0o600, "d/program": 0o700, "file": 0o600, "other": 0o600} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte("#!/bin/sh\necho "+path+"\n"), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("sub/plain", filepath.Join(dir, "d/link")); err != nil {
			t.Fatal(err)
		}
		wt := folder(t)
		box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
			Worktree: wt, Run: "mounts-" + name + filepath.Base(filepath.Dir(wt)), Mounts: []sandboxes.Mount{
				{Host: filepath.Join(dir, "d"), Inside: "/data", ReadOnly: true},
				{Host: filepath.Join(dir, "file"), Inside: "/srv/x/file", ReadOnly: true},
				{Host: filepath.Join(dir, "other"), Inside: "/srv/x/renamed", ReadOnly: true},
			},
		})
		got, _ := inside(t, box, "/data/program; sh /data/link; sh /srv/x/file; sh /srv/x/renamed; touch /data/y /srv/x/file 2>&1 | grep -cE 'Read-only|denied'; grep -cE ' (/data|/srv/x) [^ ]+ ro,' /proc/mounts; rm -f /srv/x/file 2>/dev/null || echo stays")
		if want := "d/program\nd/sub/plain\nfile\nother\n2\n2\nstays"; got != want {
			t.Errorf("inside there is\n%s\nwant\n%s", got, want)
		}
	})
}
