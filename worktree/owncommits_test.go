package worktree

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// pushed pushes a person's commit to the remote's main, from a clone of that name.
func (f *fixture) pushed(bare, name, message string) string {
	f.Helper()
	other := f.cloneDir(bare, name)
	commit := f.commit(other, name+".txt", "theirs\n", message)
	f.sh(other, "git", "push", "-q", "origin", "HEAD:main")
	return commit
}

func (f *fixture) cloneDir(bare, name string) string {
	f.Helper()
	dir := filepath.Join(realDir(f.T), name)
	f.sh("", "git", "clone", "-q", "-b", "main", bare, dir)
	return dir
}

// contains reports whether the imported tip contains the commit unchanged.
func (f *fixture) contains(tip, commit string) bool {
	f.Helper()
	_, err := f.try(f.dir, "git", "merge-base", "--is-ancestor", commit, tip)
	return err == nil
}

// Commits of people keep names and messages, however the agent gets them: from a newer base here, by fetching, or from any
// ref that existed when the worktree was made.
func TestMessagesOfPeopleStay(t *testing.T) {
	t.Parallel()
	for name, get := range map[string]func(f *fixture, bare string, agent func(...string)) string{
		"merges the base": func(f *fixture, _ string, agent func(...string)) string {
			theirs := f.commit(f.dir, "p.txt", "p\n", "Fixes #9")
			agent("git", "merge", "-q", "--no-edit", "main")
			return theirs
		},
		"rebases onto the base": func(f *fixture, _ string, agent func(...string)) string {
			theirs := f.commit(f.dir, "p.txt", "p\n", "Fixes #9")
			agent("git", "rebase", "-q", "main")
			return theirs
		},
		"merges what it has fetched": func(f *fixture, bare string, agent func(...string)) string {
			theirs := f.pushed(bare, "person", "Fixes #9")
			agent("git", "fetch", "-q", "origin")
			agent("git", "merge", "-q", "--no-edit", "origin/main")
			return theirs
		},
		"rebases onto what it pulls by address": func(f *fixture, bare string, agent func(...string)) string {
			theirs := f.pushed(bare, "person", "Fixes #9")
			agent("git", "pull", "-q", "--rebase", bare, "main")
			f.pushed(bare, "later", "Fixes #10") // the remote has moved on
			return theirs
		},
		"merges a branch": func(f *fixture, _ string, agent func(...string)) string {
			agent("git", "merge", "-q", "--no-edit", "person")
			return f.git("rev-parse", "person")
		},
		"merges a tag whose name is gone": func(f *fixture, _ string, agent func(...string)) string {
			theirs := f.git("rev-parse", "v1^{commit}")
			agent("git", "merge", "-q", "--no-edit", "v1^{commit}")
			f.git("tag", "-d", "v1")
			return theirs
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			bare := f.withRemote()
			for _, ref := range []string{"person", "tagged"} {
				f.git("switch", "-qc", ref)
				f.commit(f.dir, ref, "x\n", "Fixes #8 of "+ref)
				f.git("switch", "-q", "main")
			}
			f.git("tag", "-a", "-m", "one", "v1", "tagged")
			f.git("branch", "-qD", "tagged")
			tree := f.add("42", "r1")
			f.commit(tree.Dir(), "mine.txt", "m\n", "Closes #1")
			theirs := get(f, bare, func(argv ...string) { f.sh(tree.Dir(), argv[0], argv[1:]...) })
			f.commit(tree.Dir(), "more.txt", "m\n", "Closes #2")
			got := f.reworded(tree)
			if !f.contains(got.Tip, theirs) {
				t.Errorf("the person's commit was written anew:\n%s", f.git("log", "--graph", "--format=%h %s", got.Tip))
			}
			for _, c := range got.Commits {
				if m := f.message(c.SHA); strings.HasPrefix(m, "Closes #1") || strings.HasPrefix(m, "Closes #2") {
					t.Errorf("the agent's %s has its force: %s", c.SHA, m)
				}
			}
			if again := f.reworded(tree); again.Tip != got.Tip {
				t.Errorf("second import %+v", again)
			}
			f.remove(tree)
		})
	}
}

// A sandbox that may reach the remote can also fetch from it.
func TestMessagesOfPeopleInAPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	in := f.private("42", "r1")
	theirs := f.pushed(bare, "person", "Fixes #9")
	in.sh("git fetch -q " + bare + " main; git merge -q --no-edit FETCH_HEAD; echo b > b.txt; git add b.txt; git commit -qm 'Closes #1'")
	got := f.reworded(in.tree)
	if !f.contains(got.Tip, theirs) || f.message(got.Tip) != "Closes # 1\n" {
		t.Errorf("imported:\n%s", f.git("log", "--graph", "--format=%h %s", got.Tip))
	}
	if now, err := in.tree.CurrentBase(t.Context()); err != nil || now != f.git("rev-parse", "main") {
		t.Errorf("the base here is at %s, %v", now, err)
	}
	f.remove(in.tree)
}

// A ref that appears while the agent works does not protect its messages, whatever the ref's name.
func TestRefsOfTheAgentShieldNothing(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"tag":               "git tag mine",
		"annotated tag":     "git tag -a -m x mine",
		"branch":            "git branch mine",
		"remote branch":     "git update-ref refs/remotes/origin/mine HEAD",
		"the remote's base": "git update-ref refs/remotes/origin/main HEAD",
		"pushed branch":     "git push -q origin HEAD:refs/heads/mine",
		"moved tag":         "git tag -f v1",
		"remote away":       "git fetch -q origin; rm -r $(git remote get-url origin)",
		"no note":           "git tag mine; rm -f ../*.refs",
		"moved remote":      "git update-ref refs/remotes/origin/main HEAD; git init -q --bare ../evil; git push -q ../evil HEAD:main; git remote set-url origin $PWD/../evil",
		"instead of":        "git update-ref refs/remotes/origin/main HEAD; git init -q --bare ../evil; git push -q ../evil HEAD:main; git config url.$PWD/../evil.insteadOf $(git remote get-url origin)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.withRemote()
			f.git("tag", "v1")
			base := f.base()
			base.Remote = "main"
			spec := f.spec("42", "r1")
			spec.Base = base
			tree, err := f.repo.Add(context.Background(), spec)
			if err != nil {
				t.Fatal(err)
			}
			f.commit(tree.Dir(), "mine.txt", "m\n", "Closes #1")
			f.sh(tree.Dir(), "sh", "-c", script)
			got := f.reworded(tree)
			if m := f.message(got.Tip); m != "Closes # 1\n" {
				t.Errorf("message %q", m)
			}
			f.remove(tree)
		})
	}
}

// A local branch that an agent can move does not count if the base is on the remote; without a remote base it does.
func TestBaseHereCountsWhereItIsTheBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.withRemote()
	spec := f.spec("42", "r1")
	spec.Base.Remote = "main"
	tree, err := f.repo.Add(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(tree.Dir(), "mine.txt", "m\n", "Closes #1")
	f.sh(tree.Dir(), "git", "update-ref", "refs/heads/main", "HEAD")
	if m := f.message(f.reworded(tree).Tip); m != "Closes # 1\n" {
		t.Errorf("message %q", m)
	}
}

// Commits of another unfinished run keep their acting messages until they are finished, so they must not count as a
// person's.
func TestBranchOfAnotherRunIsNoPersons(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.add("1", "r1")
	f.commit(other.Dir(), "o.txt", "o\n", "Closes #5")
	tree := f.add("42", "r2")
	f.sh(tree.Dir(), "git", "merge", "-q", "--no-edit", "--no-ff", "ralph/1")
	got := f.reworded(tree)
	if m := f.message(got.Tip + "^2"); m != "Closes # 5\n" {
		t.Errorf("message %q", m)
	}
	if tip := f.reworded(other).Tip; tip != f.git("rev-parse", got.Tip+"^2") {
		t.Errorf("it became %s there", tip)
	}
}
