package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/worktree"
)

// For a mistyped key ralph proposes the right one, even of a closed issue.
func TestNearestKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/fix-login.md", "---\ntitle: Fix\nstate: closed\n---\n")
	m.commit(t)
	m.git(t, "branch", "ralph/fix-login")
	for _, line := range []string{"work --agent-command=true --sandbox=none --skip-permissions fix-logn", "work -n --agent-command=true fix-logn", "prompt fix-logn", "clean fix-logn"} {
		if got := m.run(t, nil, strings.Fields(line)...); got.status != exit.Usage || !strings.HasSuffix(got.stderr, "did you mean fix-login?\n") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Outside of a repository, serve names the user's file of projects.
func TestServeOutside(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "README", "hello\n")
	m.commit(t)
	if got := m.run(t, nil, "projects", "add", "--listen=unix:"+filepath.Join(m.root, "none.sock")); got.status != exit.OK {
		t.Fatalf("%+v", got)
	}
	got := m.run(t, func(h *compose.Host) { h.Dir = m.home }, "serve")
	if !strings.HasSuffix(got.stderr, "\nralph: or name the repository's folder: --repo FOLDER; or serve your projects: ralph serve ROOT/home/.config/ralph/serve.yaml\n") {
		t.Errorf("%+v", got)
	}
}

// An invalid address is refused with its flag. An argument of top is always an address, even if it looks like a folder.
func TestAddresses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := ran{status: exit.Usage, stderr: "ralph: \"nosuch\" is no address of a service; give HOST:PORT, http://HOST:PORT or unix:PATH\n"}
	if got := m.run(t, nil, "top", "nosuch"); got != want {
		t.Errorf("%+v", got)
	}
	want.stderr = "ralph: --listen: \"nosuch\" is no address of a service; give HOST:PORT, http://HOST:PORT or unix:PATH\n"
	if got := m.run(t, nil, "projects", "pause", "--listen", "nosuch", "p"); got != want {
		t.Errorf("%+v", got)
	}
	const database = "the database's address cannot be read: its port is not a number from 1 to 65535; in a password write / as %2F\n"
	if got := m.run(t, nil, "fleet", "status", "--database", "postgres://ralph@h:x/n"); got.status != exit.Usage || got.stderr != "ralph: --database: "+database {
		t.Errorf("%+v", got)
	}
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_DATABASE=postgres://ralph@h:x/n") }, "fleet", "status")
	if got.status != exit.Usage || got.stderr != "ralph: RALPH_DATABASE: "+database {
		t.Errorf("%+v", got)
	}
	got = m.run(t, func(h *compose.Host) { h.Dir = m.home }, "top")
	if lines := strings.Split(got.stderr, "\n"); got.status != exit.Usage || len(lines) != 3 || !strings.HasSuffix(lines[0], "make one with: git init ROOT/home") ||
		!strings.HasPrefix(lines[1], "ralph: or name the repository's folder: --repo FOLDER; or give a service's address: no service listens at ") {
		t.Errorf("%+v", got)
	}
	nobody := filepath.Join(m.root, "none.sock")
	want = ran{status: exit.Failed, stderr: "ralph: no service listens at unix:ROOT/none.sock\nralph: start one with: ralph serve\n"}
	if got := m.run(t, nil, "top", "unix:"+nobody); got != want {
		t.Errorf("%+v", got)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer other.Close()
	got = m.run(t, func(h *compose.Host) { h.Dir, h.Service = m.home, other.URL }, "top")
	if got.status != exit.Usage || !strings.Contains(got.stderr, "does not answer as ralph's service: its answer names no projects\n") {
		t.Errorf("%+v", got)
	}
}

// Errors in a new issue name the flag, before anything is written.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{""}, "the title is empty; give one, or leave it out to write the issue in your editor"},
		{[]string{"x", "--label", ""}, "--label: an empty name; give LABEL, or remove the flag"},
		{[]string{"x", "--label", "a, "}, "--label: an empty name; give LABEL, or remove the flag"},
		{[]string{"x", "--label", "a", "--label", ""}, "--label: an empty name; give LABEL, or remove the flag"},
		{[]string{"x", "--blocked-by", ""}, "--blocked-by: an empty name; give KEY, or remove the flag"},
		{[]string{"x", "--priority", "-1"}, "--priority: -1 is less than 0"},
		{[]string{"x", "--blocked-by", "nosuch"}, "--blocked-by: no issue \"nosuch\" in the backlog; `ralph work --dry-run` lists them"},
	} {
		if got, want := m.run(t, nil, append([]string{"new"}, c.args...)...), (ran{status: exit.Usage, stderr: "ralph: " + c.want + "\n"}); got != want {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

// A command for an issue that cannot be read ends with the status of an issue that did not succeed.
func TestBrokenIssueStatus(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/broken.md", "---\ntitle: Broken\nstate: perhaps\n---\n")
	m.commit(t)
	for _, command := range []string{"status", "show", "close", "reopen", "retry"} {
		if got := m.run(t, nil, command, "broken"); got.status != exit.Incomplete || !strings.Contains(got.stderr, "broken.md:3: ") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// Unknown arguments, and arguments that exclude each other, are named in the error, with the next step.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/det.md", "---\ntitle: Det\n---\n")
	m.commit(t)
	for line, want := range map[string]ran{
		"completion bash x": {status: exit.Usage, stderr: "ralph: ralph completion bash takes no argument, not \"x\"\n"},
		"merge --all det":   {status: exit.Usage, stderr: "ralph: KEYs and --all exclude each other; choose one\n"},
		"merge --sandbox=none det": {status: exit.Incomplete, stderr: "ralph: det is not merged: nothing to merge: there is no branch ralph/det\n" +
			"ralph: work it first with: ralph work det\n"},
	} {
		if got := m.run(t, nil, strings.Fields(line)...); got != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// If the editor does not start, no file is left behind, and the error names the editor's variable.
func TestEditorThatDoesNotStart(t *testing.T) { //nolint:paralleltest // it sets TMPDIR
	m := newMachine(t)
	t.Setenv("TMPDIR", m.home)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	fails := m.program(t, "fails", "exit 3\n") + "/fails"
	for _, c := range []struct {
		env, want string
		status    int
	}{
		{"EDITOR=/no/such", "ralph: EDITOR: ", exit.Usage},
		{"VISUAL=" + fails, "ralph: VISUAL: ", exit.Failed},
	} {
		got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, c.env) }, "edit", "one")
		if got.status != c.status || !strings.HasPrefix(got.stderr, c.want) || strings.Contains(got.stderr, "your text") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", c.env, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(m.home, "ralph-edit-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A command that is refused because of a running run names the command that follows or ends that run.
func TestRunIsOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/det.md", "---\ntitle: Det\nlabels: [no-human]\n---\n")
	m.commit(t)
	repo, err := worktree.Open(t.Context(), m.repo, worktree.Options{StateDir: filepath.Join(m.root, "state")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Claim(t.Context(), "det", worktree.Holder{Owner: "elsewhere/1/x", Run: "r"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"retry det": "ralph: `ralph stop det` ends the current run, on the machine that works it; " +
			"the next `ralph work` ends the claim of a lost run\n",
		"work --agent-command=true --sandbox=none --skip-permissions det": "; `ralph logs -f det` follows the run\n",
	} {
		if got := m.run(t, nil, strings.Fields(line)...); got.status != exit.Incomplete || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestRelativeHome checks that a relative HOME is not reported as unset.
func TestRelativeHome(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "HOME=home") }, "status")
	if got.status != exit.Failed || !strings.Contains(got.stderr, "no folder for ralph's state: HOME is not an absolute path; set HOME or XDG_STATE_HOME") {
		t.Errorf("%+v", got)
	}
}

// TestPromptOfNoIssue checks that the error quotes the key as typed.
func TestPromptOfNoIssue(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	for _, key := range []string{"", "../x"} {
		got := m.run(t, nil, "prompt", "--agent-command=true", key)
		if want := fmt.Sprintf("no issue %q in the backlog", key); got.status != exit.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v", key, got)
		}
	}
}

// TestServeWithoutItsFile checks that the error says how to create the file.
func TestServeWithoutItsFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := m.run(t, nil, "serve", "nosuch.yaml")
	const want = "ROOT/repo/nosuch.yaml: no such file; create it with: ralph projects add --config ROOT/repo/nosuch.yaml REPO\n"
	if got.status != exit.Usage || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("%+v", got)
	}
}
