package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// TestInitInACloneOfAProject checks that init makes a folder of issues only on request: it would hide the project's own issues.
func TestInitInACloneOfAProject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remote  string
		args    []string
		answer  string // typed on a terminal
		tracker string
		folder  bool
	}{
		"github":           {"git@github.com:acme/widgets.git", nil, "", "auto", false},
		"gitlab":           {"https://gitlab.example.com/a/b/c.git", nil, "", "auto", false},
		"files there":      {"git@github.com:acme/widgets.git", nil, "", "local", true},
		"another host":     {"https://git.example.com/acme/widgets.git", nil, "", "auto", true},
		"no remote":        {"", nil, "", "auto", true},
		"wanted":           {"git@github.com:acme/widgets.git", []string{"--tracker=local"}, "", "local", true},
		"named":            {"", []string{"--tracker=gitlab"}, "", "gitlab", false},
		"asked":            {"git@github.com:acme/widgets.git", nil, "\n", "github", false},
		"asked, the other": {"git@github.com:acme/widgets.git", nil, "local\n", "local", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			if c.remote != "" {
				m.remote(t, c.remote)
			}
			if name == "files there" {
				m.write(t, ".ralph/backlog/example.md", "# One\n")
			}
			got := m.run(t, func(h *compose.Host) {
				if c.answer != "" {
					h.Interactive, h.Stdin = true, strings.NewReader(c.answer)
				}
			}, append([]string{"init", "--agent=command", "--agent-command=true", "--sandbox=none", "--gate=true"}, c.args...)...)
			if got.status != 0 || strings.Contains(got.stdout, "backlog/example.md") != (c.folder && name != "files there") {
				t.Errorf("got %+v", got)
			}
			if _, err := os.Stat(filepath.Join(m.repo, ".ralph", "backlog")); (err == nil) != c.folder {
				t.Errorf("the folder of issues: %v", err)
			}
			if got := m.run(t, nil, "config", "tracker"); got.stdout != c.tracker+"\n" {
				t.Errorf("tracker %+v", got)
			}
		})
	}
}

// TestAutoSaysWhatItPassesOver checks that tracker auto prefers the forge to a folder from the repository, and that doctor
// and work report it.
func TestAutoSaysWhatItPassesOver(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	args := []string{"--sandbox=none", "--agent-command=true", "--project=https://github.com/acme/widgets"}
	const want = "tracker auto: github, because of the remote's host; the issues in ROOT/repo/.ralph/backlog are ignored"
	if got := m.run(t, nil, append([]string{"doctor"}, args...)...); !strings.Contains(got.stdout, "warn  tracker       "+want) || !strings.Contains(got.stdout, "--tracker local") {
		t.Errorf("doctor: %+v", got)
	}
	if got := m.run(t, nil, append([]string{"work", "--dry-run"}, args...)...); got.status == 0 || got.stdout != "" || strings.Count(got.stderr, want) != 1 {
		t.Errorf("work: %+v", got)
	}
	for _, said := range [][]string{{"--tracker=local"}, {"--project="}} {
		got := m.run(t, nil, append(append([]string{"doctor"}, args...), said...)...)
		if strings.Contains(got.stdout, "are ignored") {
			t.Errorf("%v: %+v", said, got)
		}
	}
}
