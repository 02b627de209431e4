package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// remote adds a remote to the repository.
func (m machine) remote(t *testing.T, address string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", m.repo, "remote", "add", "origin", address).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// nobody is an address at which nothing listens.
const nobody = "http://127.0.0.1:1"

// TestDoctorNamesWhyTheRemoteIsAway checks that each cause gets its own hint.
func TestDoctorNamesWhyTheRemoteIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ remote, want string }{
		"no network":    {nobody + "/acme/widgets.git", "the remote cannot be reached: check the network"},
		"no repository": {"/nowhere/at/all.git", "there is no repository at the remote's address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.commit(t)
			m.remote(t, c.remote)
			got := m.run(t, nil, "doctor", "--tracker=local", "--sandbox=none", "--agent-command=true")
			_, claims, _ := strings.Cut(got.stdout, "fail  claims")
			_, fix, _ := strings.Cut(claims, "fix: ")
			if !strings.HasPrefix(fix, c.want) {
				t.Errorf("want %q in\n%s", c.want, got.stdout)
			}
		})
	}
}

// TestAwayIsParked checks that a dry run and a sweep end with the same status when the tracker is unavailable.
func TestAwayIsParked(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	for _, more := range [][]string{{"work", "--dry-run"}, {"work"}} {
		got := m.run(t, nil, append(more, "--tracker=github", "--project=acme/widgets", "--sandbox=none", "--agent-command=true", "--remote=none")...)
		if got.status != exit.Parked || !strings.Contains(got.stderr, "no token: set GITHUB_TOKEN or GH_TOKEN") ||
			!strings.HasSuffix(got.stderr, "ralph: set the token in one of these variables, or name another source, such as: --token-command 'gh auth token'\n") || strings.Contains(got.stderr, "command not carried out") {
			t.Errorf("%v: %+v", more, got)
		}
	}
}

// TestNothingToStartFrom checks that all commands end with the same status in a folder without a repository, or without a commit.
func TestNothingToStartFrom(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	commands := [][]string{
		{"work", "--sandbox=none", "--agent-command=true"},
		{"run", "--prompt=hi", "--sandbox=none", "--agent-command=true"},
		{"run", "--prompt=hi", "--sandbox=native", "--agent-command=true"},
		{"sandbox", "exec", "--sandbox=none", "--", "true"},
	}
	for _, args := range commands {
		got := m.run(t, nil, args...)
		if got.status != exit.Usage || !strings.Contains(got.stderr, "repository ROOT/repo has no commits yet; make the first with: git -C ROOT/repo commit") {
			t.Errorf("no commit, %v: %+v", args, got)
		}
	}
	for _, args := range append(commands, []string{"init", "--agent=codex", "--sandbox=none"}, []string{"doctor"}) {
		got := m.run(t, func(h *compose.Host) { h.Dir = m.home }, args...)
		if got.status != exit.Usage || !strings.Contains(got.stdout+got.stderr, "is not in a git repository; make one with") {
			t.Errorf("no repository, %v: %+v", args, got)
		}
	}
	top := m.run(t, func(h *compose.Host) { h.Dir = m.home }, "top")
	if top.status != exit.Usage || !strings.Contains(top.stderr, "is not in a git repository; make one with") || strings.Contains(top.stderr, "dial") {
		t.Errorf("top: %+v", top)
	}
}

// TestProjectByName checks that a project's name is enough where the forge is known, and that the error names what is missing
// otherwise.
func TestProjectByName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remote string
		args   []string
		want   string // part of the output
	}{
		"path":               {"BARE", []string{"--tracker=github"}, "tracker github: the remote is a local path, which names no project; name it: --project OWNER/NAME"},
		"no remote":          {"", []string{"--tracker=gitlab"}, "tracker gitlab: this repository has no remote that names the project; add one: git remote add origin URL, or name"},
		"remote none":        {"", []string{"--tracker=github", "--remote=none"}, "with --remote none the project is unknown"},
		"name, path":         {"BARE", []string{"--tracker=github", "--project=acme/widgets"}, "https://github.com/acme/widgets"},
		"name, no remote":    {"", []string{"--tracker=github", "--project=acme/widgets"}, "https://github.com/acme/widgets"},
		"group, its service": {"", []string{"--tracker=gitlab", "--project=a/b/c"}, "https://gitlab.com/a/b/c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.commit(t)
			if c.remote == "BARE" {
				bare := filepath.Join(m.root, "bare.git")
				if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", "--bare", bare).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				m.remote(t, bare)
			}
			got := m.run(t, nil, append([]string{"doctor", "--sandbox=none", "--agent-command=true"}, c.args...)...)
			if !strings.Contains(got.stdout, c.want) {
				t.Errorf("want %q in\n%s", c.want, got.stdout)
			}
		})
	}
}
