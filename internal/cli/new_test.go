package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/tracker"
)

// TestNewNamesALabelOnce checks that a given label that is also the pick-up label appears once.
func TestNewNamesALabelOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	if got := m.run(t, nil, "new", "Title", "--label", "no-human", "--label", "x"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(m.repo, ".ralph/backlog/*.md"))
	if len(files) != 1 {
		t.Fatalf("got %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), "labels: [no-human, x]\n") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestNewInOtherScripts checks that titles in other scripts get distinct keys that do not depend on their order.
func TestNewInOtherScripts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	var keys []string
	for _, title := range []string{"ログインを直す", "検索を速くする", "ログインを直す"} {
		got := m.run(t, nil, "new", title)
		if !regexp.MustCompile(`^issue-[0-9a-f]{8}(-2)?\n$`).MatchString(got.stdout) {
			t.Fatalf("%s: %+v", title, got)
		}
		keys = append(keys, strings.TrimSpace(got.stdout))
	}
	if keys[0] == keys[1] || keys[2] != keys[0]+"-2" {
		t.Errorf("keys %v", keys)
	}
}

// TestNewWithTooLongATitle checks that no issue is written that could never be worked.
func TestNewWithTooLongATitle(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	got := m.run(t, nil, "new", strings.Repeat("a", tracker.MaxTitle+1))
	if got.status != exit.Usage || got.stderr != "ralph: new issue:1: its title has 4097 bytes; at most 4096 are allowed\n" {
		t.Errorf("%+v", got)
	}
	if files, err := filepath.Glob(filepath.Join(m.repo, ".ralph/backlog/*.md")); len(files) != 0 || err != nil {
		t.Errorf("%v, %v", files, err)
	}
}

// TestDoctorOnDetachedHead checks that the hint says how to check out a branch.
func TestDoctorOnDetachedHead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	m.commit(t)
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "checkout", "--quiet", "--detach").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := m.run(t, nil, "doctor")
	if text := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(text, "fix: check a branch out with: git switch BRANCH") {
		t.Errorf("%+v", got)
	}
}

// During a rebase no branch is checked out either, and git refuses to switch: the hint is the command that ends the rebase.
func TestNoBaseDuringRebase(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	shell := exec.CommandContext(t.Context(), "sh", "-c", "git checkout -q --detach && mkdir .git/rebase-merge")
	shell.Dir = m.repo
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const want = "no base branch: git rebase is in progress in ROOT/repo; end it with: git rebase --continue, or git rebase --abort"
	if got := m.run(t, nil, "work", "--dry-run"); got.status != exit.Usage || got.stderr != "ralph: "+want+"\n" {
		t.Errorf("%+v", got)
	}
	if got := m.run(t, nil, "doctor"); !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, "git switch") {
		t.Errorf("%+v", got)
	}
}

// On a forge, the address of the page for a new issue has the typed title and body; without an editor a title is the alternative.
func TestNewKeepsTheTitle(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://github.com/acme/widgets": "https://github.com/acme/widgets/issues/new?body=a+b&title=Fix+it+%26+more\n",
		"https://gitlab.com/acme/widgets": "https://gitlab.com/acme/widgets/-/issues/new?issue%5Bdescription%5D=a+b&issue%5Btitle%5D=Fix+it+%26+more\n",
	} {
		m := newMachine(t)
		m.commit(t)
		m.remote(t, remote)
		if got := m.run(t, nil, "new", "Fix it & more", "--body=a b"); got.status != 0 || got.stdout != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	none := func(h *compose.Host) { h.Env = append(h.Env, "VISUAL=", "EDITOR=") }
	if got := m.run(t, none, "new"); got.status != exit.Usage || !strings.HasSuffix(got.stderr, "set VISUAL or EDITOR, or give a title: ralph new 'TITLE'\n") {
		t.Errorf("%+v", got)
	}
}

// TestReopenNamesTheNextStep checks that a reopened issue with the pick-up label needs no further command.
func TestReopenNamesTheNextStep(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	for labels, want := range map[string]string{"no-human, needs-human": "so the next `ralph work` works it; at once: `ralph work a`\n", "in-review": "`ralph retry a` works it again\n"} {
		m.write(t, ".ralph/backlog/a.md", "---\ntitle: A\nlabels: ["+labels+"]\nstate: closed\n---\n")
		if got := m.run(t, nil, "reopen", "a"); got.status != 0 || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("%s: %+v", labels, got)
		}
	}
}

// Each command for an issue names the next step, even if the issue is closed or has not been worked.
func TestWhatToTypeForAnIssue(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/later.md", "---\ntitle: Later\n---\n")
	m.write(t, ".ralph/backlog/fix-login.md", "---\ntitle: Fix\nstate: closed\n---\n")
	m.commit(t)
	for _, command := range []string{"show", "logs", "diff", "tree"} {
		if got := m.run(t, nil, command, "later"); !strings.HasSuffix(got.stderr, "no runs on record; `ralph work --dry-run` says whether it would be worked\n") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	for _, command := range []string{"show", "logs", "diff", "reopen"} {
		if got := m.run(t, nil, command, "fix-logn"); got.status != exit.Usage || !strings.HasSuffix(got.stderr, "did you mean fix-login?\n") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := m.run(t, nil, "retry", "fix-login"); got.status != exit.Incomplete || !strings.Contains(got.stderr, "ralph reopen fix-login\n") {
		t.Errorf("retry: %+v", got)
	}
	if got := m.run(t, nil, "retry", "--help"); !strings.Contains(got.stdout, "the pick-up labels to add") {
		t.Errorf("the help of retry: %+v", got)
	}
	editor := m.program(t, "editor", "echo more >>\"$1\"\n")
	if got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "VISUAL="+editor+"/editor") }, "edit", "later"); got.status != 0 || got.stderr != "later is saved\n" {
		t.Errorf("edit: %+v", got)
	}
	if got := m.run(t, nil, "work", "-n", "--publish=pr", "--agent-command=true"); got.status != exit.Usage || !strings.HasPrefix(got.stderr, "ralph: publish pr: ") {
		t.Errorf("work: %+v", got)
	}
}
