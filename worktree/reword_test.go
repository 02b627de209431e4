package worktree

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

const acting = "Do it\n\nCloses #2, fixes acme/widgets#3. @everyone [skip ci]\n\n/close\n"

const quiet = "Do it\n\nCloses # 2, fixes acme/widgets# 3. @ everyone [ skip ci]\n\n\\/close\n"

func (f *fixture) message(commit string) string {
	f.Helper()
	return f.git("log", "-1", "--format=%B", commit)
}

func TestMessagesAreOutOfForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tree := f.add("42", "r1")
	plain := f.commit(tree.Dir(), "a.txt", "two\n", "Nothing acts here")
	first := f.commit(tree.Dir(), "b.txt", "b\n", acting)
	last := f.commit(tree.Dir(), "c.txt", "c\n", "Last")
	f.write(tree.Dir(), "d.txt", "not committed")
	got := f.handBack(tree)
	if got.Tip == last || got.New != 3 || len(got.Commits) != 3 || got.Commits[0].SHA != plain {
		t.Fatalf("handed back %+v", got)
	}
	if m := f.message(got.Commits[1].SHA); m != quiet {
		t.Errorf("message %q", m)
	}
	for _, format := range []string{"--format=%an %ae %at %cn %ce %ct %T %s"} {
		if a, b := f.git("log", format, "-1", got.Tip), f.git("log", format, "-1", last); a != b {
			t.Errorf("%s\nwas %s", a, b)
		}
	}
	if at := f.sh(tree.Dir(), "git", "rev-parse", "HEAD", "ralph/42"); at != got.Tip+"\n"+got.Tip || f.ref(workRef("42")) != got.Tip {
		t.Errorf("HEAD and branch are at %s", at)
	}
	if out := f.sh(tree.Dir(), "git", "status", "--porcelain", "--branch"); out != "## ralph/42\n?? d.txt" {
		t.Errorf("status: %s", out)
	}
	if parent := f.git("rev-parse", got.WIP+"^1"); parent != got.Tip {
		t.Errorf("uncommitted changes were saved on %s", parent)
	}
	if old := f.git("for-each-ref", "refs/ralph/old"); old != "" {
		t.Errorf("kept: %s", old)
	}
	if again := f.handBack(tree); again.Tip != got.Tip || again.New != 0 {
		t.Errorf("second hand-back %+v", again)
	}
	// The agent goes back to what it remembers, and on from there.
	f.sh(tree.Dir(), "git", "switch", "-q", "--detach", "--discard-changes", first)
	f.sh(tree.Dir(), "git", "cherry-pick", last)
	if again := f.handBack(tree); again.Tip != got.Tip || again.New != 0 {
		// A second cherry-pick has a time of its own, so that only its parent is the same.
		if parent := f.git("rev-parse", again.Tip+"^"); parent != got.Commits[1].SHA || again.New != 1 {
			t.Errorf("from the old commit: %+v", again)
		}
	}
	if err := tree.Push(context.Background(), got.Tip); err == nil {
		t.Error("pushed without a remote")
	}
	f.sh(tree.Dir(), "git", "clean", "-fdq")
	f.handBack(tree)
	f.remove(tree)
	if out := f.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
}

func TestMessagesOfAPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	person := f.commit(f.dir, "p.txt", "p\n", "Fixes #9") // a person's, on no branch of the run
	f.git("branch", "person", person)
	f.git("reset", "-q", "--hard", "HEAD~1")
	in := f.private("42", "r1")
	in.sh("git merge -q --no-edit --no-ff -m 'Merge it, closes #4' " + person + "; echo b > b.txt; git add -A; git commit -qm 'Fixes #1'")
	got := f.handBack(in.tree)
	if m := f.message(got.Tip); m != "Fixes # 1\n" {
		t.Errorf("message %q", m)
	}
	if parents := f.git("rev-parse", got.Tip+"^^2"); parents != person || f.message(got.Tip+"^") != "Merge it, closes # 4\n" {
		t.Errorf("merged %s, not the person's %s", parents, person)
	}
	// The agent goes on from what was taken in.
	if at := in.sh("git rev-parse HEAD; git status --porcelain; echo c >> b.txt; git commit -qam 'See !7'; git log --format=%s"); !strings.HasPrefix(at, got.Tip+"\nSee !7\nFixes # 1\n") {
		t.Errorf("inside: %s", at)
	}
	next := f.handBack(in.tree)
	if f.message(next.Tip) != "See ! 7\n" || f.git("rev-parse", next.Tip+"^") != got.Tip || next.New != 1 {
		t.Errorf("second hand-back %+v", next)
	}
	// In the middle of something HEAD stays where the agent has it: what stands for it is the same each time.
	before := in.sh("git bisect start >/dev/null; echo d >> b.txt; git commit -qam 'Fixes #5'; git rev-parse HEAD")
	last := f.handBack(in.tree)
	if again := f.handBack(in.tree); again.Tip != last.Tip || again.New != 0 || last.Tip == before || last.New != 1 {
		t.Errorf("in the middle %+v, then %+v", last, again)
	}
	if in.sh("git rev-parse HEAD") != before {
		t.Error("HEAD was moved in the middle of a bisection")
	}
	f.remove(in.tree)
}

// What was taken in before is replayed as it is: a person's message keeps its force.
func TestMessagesOfAPersonSurviveARebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("switch", "-q", "-c", "ralph/42")
	f.commit(f.dir, "p.txt", "p\n", "Fixes #9")
	f.git("switch", "-q", "main")
	tree := f.add("42", "r1")
	f.commit(tree.Dir(), "b.txt", "b\n", "Fixes #1")
	f.commit(f.dir, "m.txt", "m\n", "Meanwhile")
	tip, err := tree.Rebase(context.Background(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	if got := f.git("log", "--format=%s", "main.."+tip); got != "Fixes # 1\nFixes #9" {
		t.Errorf("rebased: %s", got)
	}
	f.commit(tree.Dir(), "b.txt", "c\n", "Fixes #2")
	if got := f.git("log", "--format=%s", "main.."+f.handBack(tree).Tip); got != "Fixes # 2\nFixes # 1\nFixes #9" {
		t.Errorf("after it: %s", got)
	}
}

// A process of the agent's that lives on may commit while ralph rebases: that was never taken in, and a crash in the middle
// leaves it no force either.
func TestMessagesMadeDuringARebaseOfRalph(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("42", "r1")
	in.sh("echo b > b.txt; git add b.txt; git commit -qm one")
	f.handBack(in.tree)
	f.commit(f.dir, "m.txt", "m\n", "Meanwhile")
	onto := f.base()
	if err := in.tree.update(func(rec *record) { rec.Rebasing = &onto }); err != nil {
		t.Fatal(err)
	}
	in.sh("git commit -q --allow-empty -m 'Closes #2'")
	if got := f.message(f.handBack(in.tree).Tip); got != "Closes # 2\n" {
		t.Errorf("message %q", got)
	}
	f.remove(in.tree)
}

func TestRewordCommit(t *testing.T) {
	t.Parallel()
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 1111111111111111111111111111111111111111\n" +
		"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	const signed = head + "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\nextra kept\n"
	renamed := map[string]string{strings.Repeat("1", 40): strings.Repeat("2", 40)}
	moved := strings.Replace(head, strings.Repeat("1", 40), strings.Repeat("2", 40), 1)
	for _, c := range []struct {
		in, want string
		renamed  map[string]string
	}{
		{in: head + "\nm\n", want: head + "\nm\n"},
		{in: signed + "\nm\n", want: signed + "\nm\n"},
		{in: signed + "\nfixes #1\n", want: head + "extra kept\n" + "\nfixes # 1\n"},
		{in: signed + "\nm\n", want: moved + "extra kept\n" + "\nm\n", renamed: renamed},
		{in: head + "encoding ISO-8859-1\n\nf\xfcr #1", want: head + "encoding ISO-8859-1\n\nf\xfcr # 1"},
		{in: head + "encoding UTF-7\n\nfixes +ACM-1\n", want: head + "\nfixes +ACM-1\n"},
		{in: "no message", want: "no message"},
	} {
		if got := rewordCommit(c.in, c.renamed); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

// A message that nobody reads to its end costs no more time than one that is read.
func TestRewordShortens(t *testing.T) {
	t.Parallel()
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"
	got := rewordCommit(head+"Closes #1\n\n"+strings.Repeat("äö", 4<<20), nil)
	if len(got) > messageLimit+1000 || !strings.HasPrefix(got, head+"Closes # 1\n\nä") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %.200q", len(got), got)
	}
	if again := rewordCommit(got, nil); again != got {
		t.Error("the second time it is another commit")
	}
	if whole := head + strings.Repeat("x", messageLimit); rewordCommit(whole, nil) != whole {
		t.Error("a message that is short enough was changed")
	}
}
