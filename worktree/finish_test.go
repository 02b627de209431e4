package worktree

import (
	"strings"
	"testing"
)

const acting = "Do it\n\nCloses #2, fixes acme/widgets#3. @everyone [skip ci]\n\n/close\n"

const quiet = "Do it\n\nCloses # 2, fixes acme/widgets# 3. @ everyone [ skip ci]\n\n\\/close\n"

func (f *fixture) message(commit string) string {
	f.Helper()
	return f.git("log", "-1", "--format=%B", commit)
}

// reworded imports the tree and rewrites messages that act on a forge.
func (f *fixture) reworded(t *Tree) Import {
	f.Helper()
	f.imported(t)
	got, err := t.Finish(f.Context(), true)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func TestReword(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("42", "r1")
	plain := f.commit(tree.Dir(), "a.txt", "two\n", "Nothing acts here")
	first := f.commit(tree.Dir(), "b.txt", "b\n", acting)
	last := f.commit(tree.Dir(), "c.txt", "c\n", "Last")
	f.write(tree.Dir(), "d.txt", "not committed")
	before := f.imported(tree)
	if before.Tip != last || len(before.ForgeCommands) != 1 || before.ForgeCommands[0].SHA != first || f.message(first) != acting {
		t.Errorf("imported %+v", before)
	}
	got := f.reworded(tree)
	if got.Tip == last || len(got.Commits) != 3 || got.Commits[0].SHA != plain {
		t.Fatalf("reworded %+v", got)
	}
	if m := f.message(got.Commits[1].SHA); m != quiet {
		t.Errorf("message %q", m)
	}
	format := "--format=%an %ae %at %cn %ce %ct %T %s"
	if a, b := f.git("log", format, "-1", got.Tip), f.git("log", format, "-1", last); a != b {
		t.Errorf("%s\nwas %s", a, b)
	}
	if at := f.sh(tree.Dir(), "git", "rev-parse", "HEAD", "ralph/42"); at != got.Tip+"\n"+got.Tip || f.ref(f.repo.refNames.Work("42")) != got.Tip {
		t.Errorf("HEAD and branch are at %s", at)
	}
	if out := f.sh(tree.Dir(), "git", "status", "--porcelain", "--branch"); out != "## ralph/42\n?? d.txt" {
		t.Errorf("status: %s", out)
	}
	if old := f.git("for-each-ref", "refs/ralph/old"); old != "" {
		t.Errorf("kept: %s", old)
	}
	if again := f.reworded(tree); again.Tip != got.Tip || len(f.imported(tree).ForgeCommands) != 0 {
		t.Errorf("a second time %+v", again)
	}
	// The next run of the key rewords the commits that this one did not.
	f.sh(tree.Dir(), "git", "clean", "-fdq")
	f.commit(tree.Dir(), "e.txt", "e\n", "Closes #5")
	f.imported(tree)
	f.remove(tree)
	next := f.add("42", "r2")
	if got := f.reworded(next); f.message(got.Tip) != "Closes # 5\n" {
		t.Errorf("left by the run before: %q", f.message(got.Tip))
	}
	f.remove(next)
	if out := f.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
}

func TestRewordOfAPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("42", "r1")
	in.sh("echo b > b.txt; git add -A; git commit -qm 'Fixes #1'")
	got := f.reworded(in.tree)
	if m := f.message(got.Tip); m != "Fixes # 1\n" {
		t.Errorf("message %q", m)
	}
	if again := f.imported(in.tree); again.Tip != got.Tip || len(again.ForgeCommands) != 0 {
		t.Errorf("the old commit came back: %+v", again)
	}
	in.repo = f.use(in.tree)
	if at := in.sh("git rev-parse HEAD; git status --porcelain; echo c >> b.txt; git commit -qam 'See !7'; git log --format=%s"); !strings.HasPrefix(at, got.Tip+"\nSee !7\nFixes # 1\n") {
		t.Errorf("inside: %s", at)
	}
	next := f.reworded(in.tree)
	if f.message(next.Tip) != "See ! 7\n" || f.git("rev-parse", next.Tip+"^") != got.Tip {
		t.Errorf("second time %+v", next)
	}
	f.remove(in.tree)
}

// The branch cannot bring a commit that the run was not given and that is older than the run.
func TestCommitFromElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("switch", "-qc", "secret")
	secret := f.sh(f.dir, "sh", "-ec", "echo s > s; git add s; GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git commit -qm secret; git rev-parse HEAD")
	f.git("switch", "-q", "main")
	in := f.private("k", "r1")
	if out, err := in.try("git cat-file -e " + secret); err == nil {
		t.Errorf("the run sees another branch: %s", out)
	}
	for name, do := range map[string]string{
		"with its objects":    "git fetch -q " + f.dir + " secret; git merge -q --no-edit FETCH_HEAD",
		"without its objects": "c=$(printf 'tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> '$(date +%s)' +0000\n\nx\n' $(git rev-parse main^{tree}) " + secret + " | git hash-object -t commit -w --stdin); git update-ref HEAD $c",
	} {
		in.sh(do)
		got, err := in.tree.Import(t.Context(), boxed(in.tree))
		if err == nil || got.Tip != in.tree.Start() || f.ref("refs/heads/ralph/k") != in.tree.Start() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		in.sh("git reset -q --hard main")
	}
}

// A person's commits keep their messages through a rebase.
func TestMessagesOfAPersonSurviveARebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("switch", "-q", "-c", "ralph/42")
	f.commit(f.dir, "p.txt", "p\n", "Fixes #9")
	f.git("switch", "-q", "main")
	tree := f.add("42", "r1")
	f.commit(tree.Dir(), "b.txt", "b\n", "Fixes #1")
	f.commit(f.dir, "m.txt", "m\n", "Meanwhile")
	if _, err := tree.Rebase(t.Context(), f.base()); err != nil {
		t.Fatal(err)
	}
	f.commit(tree.Dir(), "b.txt", "c\n", "Fixes #2")
	if got := f.git("log", "--format=%s", "main.."+f.reworded(tree).Tip); got != "Fixes # 2\nFixes # 1\nFixes #9" {
		t.Errorf("after it: %s", got)
	}
}

// Control characters in a message are removed whether or not a forge would act on the message, so that no terminal sees
// them.
func TestFinishWithoutControls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("42", "r1")
	f.sh(tree.Dir(), "sh", "-ec", `printf 'Fix\033[2J it\n\nby \233 hand\n' >../m; git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -F ../m; rm ../m`)
	f.commit(tree.Dir(), "a", "x", "Pl\u202eain\u2069")
	if got := f.imported(tree); !got.Controls || len(got.ForgeCommands) > 0 {
		t.Errorf("%+v", got)
	}
	got, err := tree.Finish(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if text := f.git("log", "--format=%B", "--reverse", f.base().Commit+".."+got.Tip); text != "Fix[2J it\n\nby  hand\n\nPlain\n" {
		t.Errorf("%q", text)
	}
	f.remove(tree)
}

// A commit that a person has made on the branch since the import is kept; the run's old commits are not.
func TestFinishKeepsWhatAPersonHasCommitted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("42", "r1")
	old := f.commit(tree.Dir(), "a", "a\n", acting)
	f.imported(tree)
	person := f.git("commit-tree", "-p", old, "-m", "Of a person", old+"^{tree}")
	f.git("update-ref", "refs/heads/ralph/42", person, old)
	got, err := tree.Finish(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if at := f.ref("refs/heads/ralph/42"); at != got.Tip {
		t.Errorf("the branch is at %s, want %s", at, got.Tip)
	}
	if kept := f.git("for-each-ref", "--format=%(objectname)", "refs/ralph/old"); kept != person {
		t.Errorf("kept are %q, want %s", kept, person)
	}
}
