// Package attack lists all attacks on a sandbox: those of package sandboxes/escape, and those on the user's repository
// through what ralph imports from the sandbox. The tests of the providers and the check of a user's machine run the same
// list. The package has no state.
package attack

import (
	"context"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
)

// All lists the attacks.
func All() []escape.Attack {
	return append(escape.All(), []escape.Attack{
		{Name: "repository/other branches, stashes and runs", Brief: true, Make: lookAround},
		{Name: "repository/its .git, and code that git would run", Brief: true, Make: directGit},
		{Name: "repository/pipes where git reads", Brief: true, Make: blockGit},
		{Name: "repository/folders that nobody may enter", Brief: true, Make: closeFolders},
		{Name: "repository/commits to .ralph and CI", Brief: true, Make: changeProtected},
		{Name: "repository/commits with secrets", Brief: true, Make: commitSecrets},
		{Name: "repository/commits on history from elsewhere", Brief: true, Make: borrowHistory},
		{Name: "repository/objects that git obeys or breaks down at", Brief: true, Make: breakGit},
		{Name: "repository/filters of the user's for the agent's files", Brief: true, Make: filter},
	}...)
}

// secret is the content of commits that no sandbox may see.
const secret = "the-secret-of-another-branch"

// repository is a user's repository with a run in a sandbox.
type repository struct {
	*escape.Suite
	dir     string
	private []string // objects outside the run's history
	repo    *worktree.Repo
	base    worktree.Base
	tree    *worktree.Tree
	spec    sandboxes.Spec
	room    *escape.Room
}

// openRepository creates a repository and opens a sandbox for a run.
func openRepository(s *escape.Suite) *repository {
	s.Helper()
	at, err := filepath.EvalSymlinks(s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	r := &repository{Suite: s, dir: filepath.Join(at, "project")}
	must := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}
	must(os.Mkdir(r.dir, 0o755))
	r.git("init", "-q", "-b", "main", ".")
	r.commit("work", "work\n")
	main := r.git("rev-parse", "HEAD")
	r.git("switch", "-qc", "private")
	r.private = append(r.private, r.commit("of-the-user", secret))
	r.git("switch", "-q", "main")
	must(os.WriteFile(filepath.Join(r.dir, "work"), []byte(secret+" in a stash"), 0o644))
	r.git("stash", "-q")
	r.private = append(r.private, r.git("rev-parse", "stash"))
	r.git("switch", "-q", "--detach")
	r.private = append(r.private, r.commit("of-another-run", secret+" of a run"))
	r.git("update-ref", "refs/ralph/wip/other", "HEAD")
	r.git("switch", "-q", "main")
	for _, commit := range slices.Clone(r.private) {
		r.private = append(r.private, r.git("rev-parse", commit+"^{tree}"))
	}
	r.repo, err = worktree.Open(s.Bounded(), r.dir, worktree.Options{
		StateDir: filepath.Join(at, "state"), Caps: importer.Caps{Paths: maxPaths}, Layers: 1 << 30, LayerMinFiles: 1,
	})
	must(err)
	r.base, err = r.repo.Base(s.Bounded(), "main")
	must(err)
	r.tree, err = r.repo.Add(s.Bounded(), worktree.Spec{
		Run: "attack-" + main[:8], Key: "attack", Branch: "ralph/attack", Base: r.base, Private: true, Layers: s.Layers(),
	})
	must(err)
	private, err := r.tree.Sandbox(s.Bounded())
	must(err)
	for _, dir := range append([]string{r.tree.Dir(), private.GitDir}, private.Objects...) {
		must(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type()&fs.ModeSymlink == 0 {
				s.Own(path)
			}
			return err
		}))
	}
	for dir := r.tree.Dir(); dir != at && s.Owner != 0; dir = filepath.Dir(dir) {
		must(os.Chmod(dir, 0o755))
	}
	r.spec = sandboxes.Spec{
		Run:              "attack-" + rand.Text(),
		Worktree:         r.tree.Dir(),
		GitDir:           private.GitDir,
		Objects:          private.Objects,
		Lower:            private.Lower,
		RequireIsolation: true,
		Env: []string{
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com",
		},
	}
	r.room = s.Enter(r.spec)
	return r
}

// git runs git as the user.
func (r *repository) git(args ...string) string {
	r.Helper()
	out, err := git.New(r.dir).Output(r.Bounded(), append([]string{"-c", "user.name=user", "-c", "user.email=user@example.com"}, args...)...)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// commit commits a file as the user.
func (r *repository) commit(name, content string) string {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.Fatal(err)
	}
	r.git("add", name)
	r.git("commit", "-qm", name)
	return r.git("rev-parse", "HEAD")
}

// runInside runs a script in the sandbox.
func (r *repository) runInside(script string, args ...string) string {
	r.Helper()
	out, _, err := r.room.Sh(script, args...)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// importRun imports the run's work, and reports an error.
func (r *repository) importRun() worktree.Import {
	r.Helper()
	got, err := r.tryImport()
	if err != nil {
		r.Errorf("the work cannot be imported: %v", err)
	}
	return got
}

func (r *repository) tryImport() (worktree.Import, error) {
	return r.tree.Import(r.Bounded(), func(ctx context.Context, c worktree.Command) (int, error) {
		exit, err := r.room.Exec(ctx, sandboxes.Command{Argv: c.Argv, Env: c.Env, Stdout: c.Stdout, Stderr: c.Stderr})
		return exit.Code, err
	})
}

// lookAround searches for commits and files outside the run's history.
func lookAround(s *escape.Suite) {
	r := openRepository(s)
	out := r.runInside(`
	host=$1; shift
	git show --stat HEAD
	for id; do git cat-file -e "$id" && echo "there is $id"; done
	git fetch -q "$host/.git" '+refs/*:refs/all/*' && echo "there is a way to fetch"
	git log --all -p; git stash list; git show stash; git show private; git cat-file --batch-all-objects --batch
	cat "$host/of-the-user" "$host/.git/HEAD" "$host/.git/refs/heads/private"`, append([]string{r.dir}, r.private...)...)
	if !strings.Contains(out, "work") || !strings.Contains(out, r.base.Commit) {
		s.Errorf("the run's own history is missing: %s", out)
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "there is ") || strings.Contains(line, secret) || strings.HasPrefix(line, "ref: ") {
			s.Errorf("the sandbox sees other work: %s", strings.TrimSpace(line))
		}
	}
}

// directGit writes to the host's repository, and plants programs wherever git might run them.
func directGit(s *escape.Suite) {
	r := openRepository(s)
	marker := filepath.Join(filepath.Dir(r.dir), "marker")
	before := r.state()
	out := r.runInside(`
	host=$1 marker=$2
	for file in config HEAD hooks/post-commit hooks/reference-transaction info/attributes objects/info/alternates; do
		echo x >"$host/$file" && echo "written $file"
	done 2>/dev/null
	git --git-dir="$host" update-ref refs/heads/planted HEAD && echo "written a ref"
	echo more >more; git add -A; git commit -qm more; echo undone >undone
	printf '#!/bin/sh\ntouch %s\n' "$marker" >run; chmod +x run
	private=$(git rev-parse --git-dir)
	mkdir -p "$private/hooks"
	for hook in post-commit reference-transaction post-index-change pre-push post-checkout; do cp run "$private/hooks/$hook"; done
	git config core.fsmonitor "$PWD/run"; git config filter.e.clean "$PWD/run"; git config uploadpack.packObjectsHook "$PWD/run"
	echo '* filter=e' >.gitattributes
	cp run nested-run; mkdir nested; git init -q nested; git -C nested config core.fsmonitor "$PWD/run"`, filepath.Join(r.dir, ".git"), marker)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "written ") {
			s.Errorf("in the host's .git: %s", strings.TrimSpace(line))
		}
	}
	if got := r.state(); got != before {
		s.Errorf("the host's .git has changed: %s", got)
	}
	if got := r.importRun(); got.New != 1 {
		s.Errorf("%d commits were imported", got.New)
	}
	r.git("status", "--porcelain")
	if _, err := os.Lstat(marker); err == nil {
		s.Errorf("git on the host has run the agent's program")
	}
}

// closeFolders takes the permissions from the folders that ralph has to open for an import.
func closeFolders(s *escape.Suite) {
	r := openRepository(s)
	check := func(what, script string, before func()) {
		tip := strings.TrimSpace(r.runInside("echo \"$1\" >more; git add -A; git commit -qm more; git rev-parse HEAD; "+script, what))
		before()
		if got := r.importRun(); got.Tip != tip {
			s.Errorf("%s: %s was imported, not %s", what, got.Tip, tip)
		}
	}
	check("the content of the repository", `cd "$(git rev-parse --absolute-git-dir)" && chmod 0 objects refs HEAD index`, func() {})
	check("repository and worktree", `chmod 0 "$(git rev-parse --absolute-git-dir)" .`, func() { // as for a run whose sandbox is lost
		if disk, ok := sandboxes.As[sandboxes.DiskKeeper](r.room.Sandbox); ok {
			disk.KeepDisk()
		}
		if err := r.room.Close(s.Bounded()); err != nil {
			s.Fatal(err)
		}
		if _, err := r.tree.Sandbox(s.Bounded()); err != nil {
			s.Fatal(err)
		}
		r.room = s.Enter(r.spec)
	})
}

// state returns the files, hooks and refs that determine how git on the host behaves.
func (r *repository) state() string {
	r.Helper()
	var all strings.Builder
	top := filepath.Join(r.dir, ".git")
	for _, name := range []string{"config", "HEAD", "info/attributes", "objects/info/alternates"} {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			text = []byte("(none)")
		}
		all.Write(text)
	}
	hooks, err := os.ReadDir(filepath.Join(top, "hooks"))
	if err != nil {
		r.Fatal(err)
	}
	for _, h := range hooks {
		all.WriteString(h.Name() + "\n")
	}
	return all.String() + r.git("for-each-ref", "refs/heads")
}

// blockGit puts named pipes where git reads: git would block on them.
func blockGit(s *escape.Suite) {
	r := openRepository(s)
	r.runInside(`
	echo more >more; git add -A; git commit -qm more; echo undone >undone
	private=$(git rev-parse --git-dir)
	for file in .gitignore .gitattributes .gitmodules "$private/index" "$private/info/exclude" "$private/objects/info/commit-graph"; do
		rm -f "$file"; mkfifo "$file"
	done
	mkdir -p inner/.git; mkfifo inner/.git/HEAD inner/.git/config`)
	if got := r.importRun(); got.New != 1 || got.WIP == "" {
		s.Errorf("imported are %d commits, and uncommitted changes: %v", got.New, got.WIP != "")
	}
}
