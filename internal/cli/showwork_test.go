package cli

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestShowFindsTheBranch checks that `ralph show` names the branch, whatever its prefix, or the commit if the branch is gone.
func TestShowFindsTheBranch(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", m.repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("checkout", "--quiet", "-b", "m$(id);x")
	agent := m.program(t, "agent", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	identity := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_COMMIT_AUTHOR=a <a@b>") }
	work := []string{"work", "--sandbox=none", "--skip-permissions", "--agent-command=" + filepath.Join(agent, "agent"), "--gate=true", "--branch-prefix=bots/"}
	if got := m.run(t, identity, work...); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, nil, "show", "one")
	for _, want := range []string{"  bots/one has 1 commit that m$(id);x lacks\n", "  next: ralph diff one\n", "  next: ralph merge one\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
	git("branch", "-D", "bots/one")
	if got := m.run(t, nil, "show", "one"); !strings.Contains(got.stdout, " has 1 commit that m$(id);x lacks\n") {
		t.Errorf("without its branch: %+v", got)
	}
}

// A squashed branch counts as merged for every command, and every command that `ralph show` suggests works.
func TestShowSuggestsWhatWorks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by           string // what a person runs after the work
		shown, clean string
		next         []string
	}{
		"squashed": {
			"git merge -q --squash ralph/one && git commit -qm by-hand", "master has the changes of ralph/one", "master has its changes", []string{"ralph clean"},
		},
		"gone": {
			"rm .ralph/backlog/one.md", "ralph/one has 1 commit that master lacks", "1 commit not in master",
			[]string{"ralph diff one", "git merge ralph/one", "ralph clean --discard one"},
		},
		"squashed and gone": {
			"git merge -q --squash ralph/one && git commit -qm by-hand && rm .ralph/backlog/one.md", "master has the changes of ralph/one", "master has its changes",
			[]string{"ralph clean"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".gitignore", ".ralph\n")
			m.commit(t)
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
			agent := m.program(t, "agent", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
			own := []string{"--sandbox=none", "--commit-author=a <a@b>"}
			if got := m.run(t, nil, append(own, "work", "--skip-permissions", "--agent-command="+agent+"/agent", "--gate=true")...); got.status != exit.OK {
				t.Fatalf("%+v", got)
			}
			person := exec.CommandContext(t.Context(), "sh", "-ec", c.by)
			person.Dir = m.repo
			person.Env = append(person.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			if out, err := person.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := m.run(t, nil, "show", "one")
			if !strings.Contains(got.stdout, "  "+c.shown+"\n") {
				t.Errorf("%+v", got)
			}
			var next []string
			for line := range strings.Lines(got.stdout) {
				if line, ok := strings.CutPrefix(line, "  next: "); ok {
					line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
					next = append(next, line)
				}
			}
			if !slices.Equal(next, c.next) {
				t.Errorf("next: %q", next)
			}
			if got := m.run(t, nil, "clean", "--dry-run"); !strings.Contains(got.stdout, c.clean) {
				t.Errorf("%+v", got)
			}
			for _, line := range next {
				if args, ok := strings.CutPrefix(line, "ralph "); ok {
					if got := m.run(t, nil, strings.Fields(args)...); got.status != exit.OK {
						t.Errorf("%s: %+v", line, got)
					}
				}
			}
			if out, _ := exec.CommandContext(t.Context(), "git", "-C", m.repo, "branch", "--list", "ralph/*").Output(); len(out) > 0 {
				t.Errorf("left: %s", out)
			}
		})
	}
}

// A branch that was removed here and still exists on the remote is named, with the command that deletes it there.
func TestCleanNamesWhatIsOnTheRemote(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	bare := filepath.Join(m.root, "bare.git")
	shell := func(script string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-ec", script)
		c.Dir = m.repo
		c.Env = append(c.Environ(), "BARE="+bare)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return string(out)
	}
	shell(`GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
git init -q --bare "$BARE"; git remote add origin "$BARE"; git push -q origin master; git branch ralph/one; git branch ralph/two
git push -q origin ralph/one ralph/two; git push -q --force origin "$(git commit-tree -p master -m x 'master^{tree}'):refs/heads/ralph/two"`)
	got := m.run(t, nil, "clean")
	_, command, ok := strings.Cut(strings.TrimSpace(got.stderr), "no request needs them, delete them there:\n")
	if !ok || strings.Contains(got.stderr, "ralph/two") || got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	shell(command)
	if left := shell(`git ls-remote "$BARE"`); strings.Contains(left, "ralph/one") || !strings.Contains(left, "ralph/two") {
		t.Errorf("%s", left)
	}
}

// A run without commits leaves no branch. A branch without commits of its own is neither called merged nor contained in its base.
func TestNoCommitsOfItsOwn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	agent := m.program(t, "agent", "echo '<promise>COMPLETE</promise>'\n")
	got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=a <a@b>", "--skip-permissions", "--agent-command="+agent+"/agent", "--gate=true")
	if got.status != exit.Incomplete {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct{ show, merge, clean string }{
		{"\n  no branch\n", "nothing to merge: there is no branch ralph/one", "Nothing to clean."},
		{"\n  ralph/one has no commits of its own\n", "nothing to merge: ralph/one has no change that master lacks", "no commits of its own"},
	} {
		if got := m.run(t, nil, "show", "one"); !strings.Contains(got.stdout, c.show) || !strings.Contains(got.stdout, "  commits     none, from master\n") {
			t.Errorf("show: %+v", got)
		}
		if got := m.run(t, nil, "tree", "one"); got.stdout != "" || got.stderr != "nothing to check out: one has no commits of its own\n" {
			t.Errorf("tree: %+v", got)
		}
		if got := m.run(t, nil, "merge", "one", "--sandbox=none"); got.status != exit.Incomplete || !strings.Contains(got.stderr, c.merge) {
			t.Errorf("merge: %+v", got)
		}
		if got := m.run(t, nil, "clean"); !strings.Contains(got.stdout, c.clean) {
			t.Errorf("clean: %+v", got)
		}
		m.git(t, "branch", "--force", "ralph/one")
	}
}

// Branches with another prefix are not ralph's to delete, and are not reported as removed.
func TestDiscardedWorkStaysOnAnotherBranch(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	agent := m.program(t, "agent", "echo x >new; git add new; git commit -qm new; echo '<promise>COMPLETE</promise>'\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=a <a@b>", "--skip-permissions", "--agent-command="+agent+"/agent", "--gate=true", "--branch-prefix=bots/"); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	if got := m.run(t, nil, "clean", "--discard", "one"); got.status != exit.OK || !strings.Contains(got.stdout, "; its commits stay on branch bots/one") {
		t.Errorf("clean: %+v", got)
	}
	m.git(t, "rev-parse", "--verify", "refs/heads/bots/one")
}

// TestShowWhileTheBranchIsCheckedOut checks that the run's own base counts while its branch is checked out to be looked at.
func TestShowWhileTheBranchIsCheckedOut(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# One\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo new >f; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--gate=true", "--skip-permissions", "--agent-command="+program+"/agent"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "switch", "--quiet", "ralph/one").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := m.run(t, nil, "show", "one"); got.status != 0 || !strings.Contains(got.stdout, "ralph/one has 1 commit that master lacks\n") || strings.Contains(got.stdout, "ralph clean") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "diff", "one"); got.status != 0 || !strings.HasSuffix(got.stdout, "+new\n") {
		t.Errorf("%+v", got)
	}
}

// If the branch has lost the commits of a run that succeeded, show says how to bring them back, merge names show, and clean keeps them.
func TestLostCommitsAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\n")
	m.commit(t)
	agent := m.program(t, "agent", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	identity := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_COMMIT_AUTHOR=a <a@b>") }
	merge := []string{"merge", "one", "--sandbox=none", "--gate=true"}
	if got := m.run(t, identity, "work", "--sandbox=none", "--skip-permissions", "--gate=true", "--agent-command="+filepath.Join(agent, "agent")); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	refs := func(name string) string {
		out, err := exec.Command("git", "-C", m.repo, "rev-parse", "--verify", "--quiet", name).Output()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return strings.TrimSpace(string(out))
	}
	tip := refs("ralph/one")
	m.git(t, "branch", "-qf", "ralph/one", "HEAD")
	command := "git branch -f ralph/one " + tip[:12]
	if got := m.run(t, identity, merge...); got.status == exit.OK || !strings.Contains(got.stderr, "`ralph show one` says") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "clean"); !strings.Contains(got.stdout, "kept") || refs("ralph/one") == tip {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "show", "one"); !strings.Contains(got.stdout, "  it has lost the commits of the last successful run: "+tip[:12]+"\n") ||
		!strings.HasSuffix(got.stdout, "  next: "+command+"\n  next: ralph merge one\n") {
		t.Errorf("%+v", got)
	}
	m.git(t, strings.Fields(command)[1:]...)
	if got := m.run(t, identity, merge...); got.status != exit.OK {
		t.Errorf("%+v", got)
	}
}
