package link

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
)

// newRepo makes a repository with one commit, and returns a runner and a function that runs git there.
func newRepo(t *testing.T) (g git.Runner, run func(args ...string) string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(dir, ".git")
	g = git.New(dir).Pin(common, common, dir).With("GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run = func(args ...string) string {
		out, err := g.Output(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("commit", "-q", "--allow-empty", "-m", "first")
	return g, run
}

// A worktree has the same files as one made by git, and git works in it.
func TestMake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ main, detached bool }{
		"branch": {main: true}, "detached": {true, true}, "by git": {}, "detached by git": {detached: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, run := newRepo(t)
			run("branch", "ours")
			run("branch", "theirs")
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			folder := func(name string) Link {
				l := Link{filepath.Join(top, "new", name), filepath.Join(g.Common(), "worktrees", name), git.Heads + name, "why"}
				if c.detached {
					l.Head = run("rev-parse", "HEAD")
				}
				return l
			}
			ours, theirs := folder("ours"), folder("theirs")
			if err := Make(t.Context(), g, c.main, ours); err != nil {
				t.Fatal(err)
			}
			if err := Make(t.Context(), g, false, theirs); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"HEAD", "commondir", "gitdir", "locked"} {
				have, want := content(t, ours.GitDir, file), content(t, theirs.GitDir, file)
				if want = strings.ReplaceAll(want, "theirs", "ours"); have != want {
					t.Errorf("%s is %q, git writes %q", file, have, want)
				}
			}
			if have := content(t, ours.Dir, ".git"); have != "gitdir: "+ours.GitDir+"\n" {
				t.Errorf(".git is %q", have)
			}
			all, err := checkout.List(t.Context(), g)
			if err != nil || len(all) != 3 || all[1].Dir != ours.Dir || all[1].Reason != "why" || (all[1].Branch != ours.Head) != c.detached {
				t.Errorf("git lists %+v, %v", all, err)
			}
			if out, err := g.Pin(ours.GitDir, g.Common(), ours.Dir).Output(t.Context(), "status", "--porcelain"); err != nil || out != "" {
				t.Errorf("git says %q, %v", out, err)
			}
		})
	}
}

// If git would do more, the work is left to git, and nothing is made.
func TestLeftToGit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   string // path in the repository
		there  bool   // the worktree's folder exists
		config git.Config
	}{
		"sparse":              {file: "info/sparse-checkout"},
		"settings of its own": {file: "config.worktree"},
		"another format":      {file: "reftable"},
		"shared":              {config: git.Config{{Name: "core.sharedrepository", Value: "group"}}},
		"a rebase":            {file: "rebase-merge"},
		"folder":              {there: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newRepo(t)
			l := Link{filepath.Join(t.TempDir(), "ours"), filepath.Join(g.Common(), "worktrees", "ours"), "refs/heads/main", "why"}
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(g.Common(), c.file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.there {
				if err := os.Mkdir(l.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if done, err := l.writeEntry(g, c.config); done || err != nil {
				t.Errorf("written: %v, %v", done, err)
			}
			for _, dir := range []string{l.Dir, l.GitDir} {
				if _, err := os.Lstat(dir); (err == nil) != (c.there && dir == l.Dir) {
					t.Errorf("%s: %v", dir, err)
				}
			}
		})
	}
}

// A branch that the user is rebasing, so that its checkout has no branch meanwhile, is not given to a worktree.
func TestRebased(t *testing.T) {
	t.Parallel()
	g, run := newRepo(t)
	run("commit", "-q", "--allow-empty", "-m", "second")
	if _, err := g.Output(t.Context(), "rebase", "-q", "--exec", "false", "--keep-empty", "HEAD~1"); err == nil {
		t.Fatal("the rebase has ended")
	}
	l := Link{filepath.Join(t.TempDir(), "ours"), filepath.Join(g.Common(), "worktrees", "ours"), git.Heads + "main", "why"}
	if err := Make(t.Context(), g, true, l); err == nil {
		t.Error("two checkouts have the branch")
	}
}

func content(t *testing.T, elem ...string) string {
	t.Helper()
	all, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
