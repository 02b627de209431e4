package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestMissingIdentity checks that doctor and work report a missing git identity with the command that fixes it, and that no agent
// is started.
func TestMissingIdentity(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	const missing = "git has no name and e-mail address for commits"
	const fix = `git config --global user.name "YOUR NAME" && git config --global user.email YOU@EXAMPLE.COM, or --commit-author "NAME <MAIL>"`
	m := newMachine(t)
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\ntitle: A\nlabels: [no-human]\n---\nDo it.\n")
	ran := filepath.Join(m.root, "ran")
	none := []string{"--sandbox=none", "--gate=true", "--agent-command=touch " + ran}
	got := m.run(t, nil, append([]string{"work"}, none...)...)
	if got.status != exit.Failed || got.stderr != "ralph: "+missing+"\nralph: "+fix+"\n" {
		t.Errorf("work: %+v", got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("an agent was started")
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none":     {none, "fail  identity      " + missing + "\n                    fix: " + fix + "\n"},
		"isolated": {[]string{"--sandbox=native"}, "warn  identity      " + missing + "; the author of commits is ralph <ralph@localhost>\n                    fix: " + fix + "\n"},
		"signed":   {append(none, "--commit-author=A <a@b.c>", "--sign=ssh"), "fail  identity      sign the commits: git commit-tree: "},
		"named":    {append(none, "--commit-author=A <a@b.c>", "--sign-off"), "ok    identity      the author of commits is A <a@b.c>\n"},
	} {
		if got := m.run(t, nil, append([]string{"doctor"}, c.args...)...); !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := m.run(t, nil, "work", "--dry-run", "--co-author=A a@b.c"); got.status != exit.Usage || !strings.Contains(got.stderr, "Name <mail@example.com>") {
		t.Errorf("not an identity: %+v", got)
	}
}
