package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// A success without a gate is reported at the end of a sweep and of a merge.
func TestSuccessWithoutAGate(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo x >$RALPH_ISSUE_KEY.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	for key, gate := range map[string][]string{"with": {"--gate=true"}, "without": nil} {
		own := append([]string{"--sandbox=none", "--commit-author=A <a@b.c>"}, gate...)
		m.write(t, ".ralph/backlog/"+key+".md", "---\nlabels: [no-human]\n---\n# Add a file\n")
		got := m.run(t, nil, append(own, "work", key, "--skip-permissions", "--agent-command="+program+"/agent")...)
		if told := strings.Contains(got.stdout, "\nNo gate checked 1 issue; set `gate` in .ralph/config.yaml, or give --gate.\n"); got.status != 0 || told != (key == "without") {
			t.Errorf("work %s: %+v", key, got)
		}
		got = m.run(t, nil, append(own, "merge", key)...)
		if told := strings.Contains(got.stderr, key+" was merged without a gate"); got.status != 0 || told != (key == "without") {
			t.Errorf("merge %s: %+v", key, got)
		}
	}
}

// For an issue in review the reason is not a missing label, and the hint works.
func TestNamedIssueInReview(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [in-review]\n---\n# Add a file\n")
	m.commit(t)
	own := []string{"--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions"}
	got := m.run(t, nil, append([]string{"work", "one"}, own...)...)
	if got.status != exit.Incomplete || !strings.Contains(got.stderr, "one is skipped: the issue is in review (label in-review); `ralph diff one`, then `ralph merge one`; `ralph retry one` puts it back into the backlog") {
		t.Errorf("%+v", got)
	}
	if got = m.run(t, nil, "retry", "one"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got = m.run(t, nil, append([]string{"work", "--dry-run", "one"}, own...)...); !strings.HasPrefix(got.stdout, "Would work, in this order:\n") {
		t.Errorf("%+v", got)
	}
}

// Front matter that does not begin the file is reported, because its labels do not count.
func TestFrontMatterBelowEmptyLines(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "\n\n---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions", "--dry-run")
	if !strings.Contains(got.stderr, "one.md:1: front matter begins in the first line of a file; remove the empty lines above it") {
		t.Errorf("%+v", got)
	}
}

// No issue is claimed for an agent whose path does not exist.
func TestAgentThatIsAPathToNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command="+m.root+"/nope", "--skip-permissions")
	if got.status != exit.Parked || !strings.Contains(got.stderr, "ROOT/nope: not found; install it") || strings.Contains(got.stderr, "started") {
		t.Errorf("%+v", got)
	}
}

// A field with almost the name of a known one is reported, and the issue is still worked.
func TestSlipInAnIssuesFields(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\nstate: open\npriorty: 1\nstage: beta\ntitel: Add a file\n---\n")
	m.commit(t)
	got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions", "--dry-run")
	if got.status != 0 || !strings.HasPrefix(got.stdout, "Would work, in this order:\n") || strings.Count(got.stderr, "warning") != 2 ||
		!strings.Contains(got.stderr, "one.md:4: \"priorty\" is not a field that ralph knows; did you mean priority?") ||
		!strings.Contains(got.stderr, "one.md:6: \"titel\" is not a field that ralph knows; did you mean title?") {
		t.Errorf("%+v", got)
	}
	got = m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions", "--max-iterations=1")
	if strings.Contains(got.stderr, "broken") || !strings.Contains(got.stdout, "1 issue worked") {
		t.Errorf("%+v", got)
	}
}

// A dry run lists issues that cannot be read among those that it would skip, and ends like the sweep. Doctor fails, too.
func TestBrokenIssueInADryRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\npriority: high\n---\n# Add a file\n")
	m.commit(t)
	work := []string{"work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions", "--dry-run"}
	got := m.run(t, nil, work...)
	if got.status != exit.Incomplete || got.stderr != "ralph: 1 broken issue skipped\n" ||
		!strings.Contains(got.stdout, "\nWould skip:\nISSUE  WHY NOT\none    ROOT/repo/.ralph/backlog/one.md:3: priority is \"high\"; write") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(work, "--json")...); got.status != exit.Incomplete || !strings.Contains(got.stdout, "one.md:3: priority is") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "doctor", "--sandbox=none", "--agent-command=true"); got.status == exit.OK || !strings.Contains(got.stdout, "priority is \"high\"") {
		t.Errorf("%+v", got)
	}
}

// A dry run also reports what `ralph work` would refuse.
func TestDryRunSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	args := []string{"work", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent-command=true", "--skip-permissions", "--parallel=100000000"}
	got, dry := m.run(t, nil, args...), m.run(t, nil, append(args, "--dry-run")...)
	if got.status != exit.Usage || !strings.Contains(got.stderr, "open files") || dry.status != 0 || !strings.Contains(dry.stderr, "warning: --parallel 100000000 needs") {
		t.Errorf("%+v\n%+v", got, dry)
	}
}

// If the journal is lost, a branch with commits is still named.
func TestBranchWithoutRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".ralph\n")
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo x >x; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	if got := m.run(t, nil, "work", "--sandbox=none", "--commit-author=A <a@b.c>", "--skip-permissions", "--agent-command="+program+"/agent"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.RemoveAll(filepath.Join(m.home, ".local")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"show", "diff", "logs"} {
		if got := m.run(t, nil, command, "one"); got.status != exit.Failed || !strings.Contains(got.stderr, "but ralph/one has 1 commit; look with: git log ") ||
			!strings.Contains(got.stderr, "; merge with: ralph merge one\n") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// An issue in review, and one that it blocks, name the commands that merge it.
func TestSkippedBecauseOfAReview(t *testing.T) {
	t.Parallel()
	m, work := worked(t)
	m.write(t, ".ralph/backlog/three.md", "---\nlabels: [no-human]\nblocked_by: [one]\n---\n# Add a file\n")
	got := m.run(t, nil, append(work, "--dry-run")...)
	if !strings.Contains(got.stdout, "; `ralph diff one`, then `ralph merge one`; `ralph retry one` puts it back") ||
		!strings.Contains(got.stdout, "blocked by one, which is in review: `ralph merge one`\n") {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, append(work, "three")...); got.status != exit.Incomplete || !strings.Contains(got.stderr, "three is skipped: the issue is blocked by one, which is in review: `ralph merge one`\n") {
		t.Errorf("%+v", got)
	}
}
