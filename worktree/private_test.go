package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/record"
)

// inside is an agent's view of a private tree: a shell whose git uses the private repository, like a sandbox that mounts it
// in the place of the worktree's own.
type inside struct {
	*fixture
	tree *Tree
	repo Private
}

func (f *fixture) private(key, run string) inside {
	f.Helper()
	s := f.spec(key, run)
	s.Private = true
	if f.layered {
		s.Layers = func(context.Context, string) error { return nil }
	}
	tree := f.addSpec(s)
	return inside{f, tree, f.use(tree)}
}

func (in inside) try(line string) (string, error) {
	argv := merged(in.tree, []string{"sh", "-ec", line})
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = in.tree.Dir()
	cmd.Env = append(os.Environ(), "GIT_DIR="+in.repo.GitDir, "GIT_WORK_TREE="+in.tree.Dir())
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (in inside) sh(line string) string {
	in.Helper()
	out, err := in.try(line)
	if err != nil {
		in.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func TestPrivateRepository(t *testing.T) {
	t.Parallel()
	privateRepository(newFixture(t))
}

func privateRepository(f *fixture) {
	t := f.T
	in := f.private("42", "r1")
	if out := in.sh("git status --porcelain=v2 --branch; git log --oneline main..HEAD; git remote; git fsck --strict"); strings.Contains(out, "\n1 ") {
		t.Errorf("not clean inside: %s", out)
	}
	if out := in.sh("git symbolic-ref HEAD; git for-each-ref --format='%(refname)'"); out != "refs/heads/ralph/42\nrefs/heads/main\nrefs/heads/ralph/42" {
		t.Errorf("refs inside: %s", out)
	}
	first := in.sh("echo b > b.txt; git add -A; git commit -qm 'add b'; git rev-parse HEAD")
	in.sh("echo changed > a.txt; mkdir dir; echo new > dir/new; echo staged > staged; git add staged; rm .gitignore")
	if _, err := f.try(f.dir, "git", "cat-file", "-e", first); err == nil {
		t.Error("the commit is in the user's repository already")
	}
	got := f.imported(in.tree)
	if got.Tip != first || got.New != 1 || len(got.Commits) != 1 || got.WIP == "" {
		t.Fatalf("imported %+v", got)
	}
	if names := f.git("diff", "--name-status", got.Tip, got.WIP); names != "D\t.gitignore\nM\ta.txt\nA\tdir/new\nA\tstaged" {
		t.Errorf("saved changes: %s", names)
	}
	if again := f.imported(in.tree); again.New != 0 || again.WIP != got.WIP {
		t.Errorf("second import %+v", again)
	}
	second := in.sh("git add -A; git commit -qm more; git gc -q --prune=now; git rev-parse HEAD")
	got = f.imported(in.tree)
	if got.Tip != second || got.New != 1 || len(got.Commits) != 2 || got.WIP != "" {
		t.Errorf("packed import %+v", got)
	}
	if out := f.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
	f.remove(in.tree)
	if _, err := os.Stat(in.repo.GitDir); !os.IsNotExist(err) {
		t.Errorf("private repository is left: %v", err)
	}
	left, err := os.ReadDir(f.repo.tempDir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in tmp: %v %v", left, err)
	}
}

// Checkouts of agents' commits borrow the history of the base, as the agents' trees do, and are complete.
func TestCheckoutsShareAHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	tip := in.sh("echo b > b.txt; git add -A; git commit -qm 'add b'; git rev-parse HEAD")
	f.imported(in.tree)
	base := f.base()
	s := Spec{Run: "r1-verify", ParentRun: "r1", Key: "k", Base: base, FilterBase: base.Commit, Private: true, Detached: true}
	s.Base.Commit = tip
	tree := f.addSpec(s)
	stores, err := os.ReadDir(f.repo.statePath("history"))
	if err != nil || len(stores) != 1 || stores[0].Name() != base.Commit {
		t.Errorf("histories: %v, %v", stores, err)
	}
	private, err := tree.Sandbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.sh(tree.Dir(), "git", "--git-dir="+private.GitDir, "fsck", "--full", "--strict")
	if log := f.sh(tree.Dir(), "git", "--git-dir="+private.GitDir, "log", "--format=%H", "HEAD"); log != tip+"\n"+f.git("log", "--format=%H", base.Commit) {
		t.Errorf("commits of the checkout: %s", log)
	}
}

// TestAgentsWithPrivateGit covers ordinary uses of git by agents.
func TestAgentsWithPrivateGit(t *testing.T) {
	t.Parallel()
	agentsWithPrivateGit(t, newFixture)
}

func agentsWithPrivateGit(t *testing.T, newFixture func(*testing.T) *fixture) {
	tests := map[string]struct {
		do       string
		old      bool // the first commit is kept under refs/ralph/old
		detached bool // HEAD stays as it is
	}{
		"switches the branch":  {do: "git switch -qc other; git commit -q --allow-empty -m more"},
		"detaches HEAD":        {do: "git checkout -q --detach; git commit -q --allow-empty -m more"},
		"amends":               {do: "git commit -q --amend -m better", old: true},
		"resets":               {do: "git reset -q --hard main", old: true},
		"packs all refs":       {do: "git commit -q --allow-empty -m more; git pack-refs --all"},
		"repacks everything":   {do: "git commit -q --allow-empty -m more; git repack -qad"},
		"merges":               {do: "git switch -qc side main; git commit -q --allow-empty -m s; git switch -q -; git merge -q --no-edit side"},
		"stashes":              {do: "echo x >> a.txt; git stash -q; git commit -q --allow-empty -m more"},
		"makes many commits":   {do: "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > $i; git add .; git commit -qm $i; done"},
		"tags and notes":       {do: "git tag -am t t; git notes add -m n; git commit -q --allow-empty -m more"},
		"is in a merge":        {do: "git switch -qc side main; echo o > done; git add .; git commit -qm o; git switch -q ralph/k; ! git merge side", detached: true},
		"is in a rebase":       {do: "git switch -qc side main; echo o > done; git add .; git commit -qm o; git switch -q ralph/k; ! git rebase side", detached: true, old: true},
		"removes its branch":   {do: "git checkout -q --detach; git branch -qD ralph/k; git commit -q --allow-empty -m more"},
		"has a worktree":       {do: "git worktree add -q --detach ignored/wt; git commit -q --allow-empty -m more"},
		"makes a branch below": {do: "git checkout -q --detach; git branch -qD ralph/k; git switch -qc ralph/k/sub; git commit -q --allow-empty -m more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			first := in.sh("echo x > done; git add -A; git commit -qm work; git rev-parse HEAD")
			f.imported(in.tree)
			in.sh(test.do)
			tip := in.sh("git rev-parse HEAD")
			got := f.imported(in.tree)
			if got.Tip != tip || f.ref("refs/heads/ralph/k") != tip || f.ref("refs/ralph/work/k") != tip {
				t.Errorf("tip %s, branch %s; want %s", got.Tip, f.ref("refs/heads/ralph/k"), tip)
			}
			if kept := f.ref("refs/ralph/old/k/"+first[:12]) == first; kept != test.old {
				t.Errorf("first commit kept as old: %v, want %v", kept, test.old)
			}
			if head := in.sh("git symbolic-ref -q HEAD || true"); !test.detached && head != "refs/heads/ralph/k" {
				t.Errorf("HEAD is %q", head)
			}
			f.remove(in.tree)
		})
	}
}

// TestPrivateConfigRoundTrip lets git read the configuration that ralph writes.
func TestPrivateConfigRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := "printf \"a\\tb\" ; # \\ %f\n\tx"
	f.git("config", `filter.a.B "c".clean`, want)
	f.git("config", "core.abbrev", "9")
	in := f.private("k", "r1")
	if got := in.sh(`git config 'filter.a.B "c".clean'`); got != want {
		t.Errorf("filter is %q, want %q", got, want)
	}
	if got := in.sh("git config core.abbrev; git config user.name; git config user.email"); got != "9\nAda\nada@example.com" {
		t.Errorf("settings: %s", got)
	}
	f.imported(in.tree)
	f.remove(in.tree)
}

// Locks of a git that was killed with its agent do not block the next agent.
func TestLocksOfAKilledGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("42", "r1")
	in.sh("echo b > b.txt; mkdir -p $GIT_DIR/refs/heads/ralph; touch $GIT_DIR/index.lock $GIT_DIR/HEAD.lock $GIT_DIR/config.lock $GIT_DIR/$(git symbolic-ref HEAD).lock")
	if got := f.imported(in.tree); got.WIP == "" {
		t.Fatalf("imported %+v", got)
	}
	tip := in.sh("git add -A; git config x.y z; git commit -qm 'add b'; git rev-parse HEAD")
	if got := f.imported(in.tree); got.Tip != tip || got.WIP != "" {
		t.Errorf("imported %+v", got)
	}
	f.remove(in.tree)
}

// Commits after the clock was set back do not count as older than their run.
func TestCommitsAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("42", "r1")
	if err := in.tree.updateRecord(func(r *record.Record) { r.Made = time.Now().Add(3 * time.Hour) }); err != nil {
		t.Fatal(err)
	}
	tip := in.sh("echo b > b.txt; git add -A; git commit -qm 'add b'; git rev-parse HEAD")
	if got := f.imported(in.tree); got.Tip != tip {
		t.Errorf("imported %+v", got)
	}
	f.remove(in.tree)
}

// A worktree without uncommitted changes costs one git status. git add would store files again whose time equals the
// index's: they are borrowed from folders that the repository cannot write.
func TestCommittedFilesAreNotStoredAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, "echo new >new; git add new; git commit -qm new")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"$*\" >>" + bin + "/log\nexec " + git + ` "$@"`
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	got, err := tree.Import(t.Context(), func(ctx context.Context, c Command) (int, error) {
		c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		return boxed(tree)(ctx, c)
	})
	if err != nil || got.New != 1 || got.WIP != "" {
		t.Errorf("imported %+v, error %v", got, err)
	}
	log, err := os.ReadFile(filepath.Join(bin, "log"))
	if text := string(log); err != nil || strings.Count(text, " status ") != 1 || strings.Contains(text, "add -") || strings.Count(text, "\n") > 4 {
		t.Errorf("git was started as\n%s(%v)", text, err)
	}
}

// A branch that points to a tag is imported as the tag's commit.
func TestBranchThatNamesATag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.workIn("k", "r1", true, `echo new >new; git add new; git commit -qm new
git tag -am t t; git rev-parse t >"$(git rev-parse --git-path "$(git symbolic-ref HEAD)")"; git tag -d t`)
	if got, err := tree.Import(t.Context(), boxed(tree)); err != nil || got.New != 1 || got.WIP != "" {
		t.Errorf("imported %+v, error %v", got, err)
	}
}
