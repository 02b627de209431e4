package cli

import (
	"strings"
	"testing"
)

// A dry run, a sweep and the status say what issues wait for.
func TestWaits(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "form.go", "package web\n")
	m.write(t, ".gitignore", ".ralph\n")
	m.commit(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\npriority: 1\n---\n# Fix `form.go`\n")
	m.write(t, ".ralph/backlog/b.md", "---\nlabels: [no-human]\npriority: 2\ntouches: [form.go]\n---\n# Another\n")
	m.write(t, ".ralph/backlog/c.md", "---\nlabels: [no-human]\npriority: 3\n---\n# A third\n")
	program := m.program(t, "agent", "cat >/dev/null; echo x >>form.go; git -c user.name=a -c user.email=a@b commit -qam x; echo '<promise>COMPLETE</promise>'\n")
	agent := []string{"--sandbox=none", "--gate=true", "--commit-author=A <a@b.c>", "--agent-command=" + program + "/agent"}
	work := append([]string{"work", "--max-open-requests=2"}, agent...)
	says := func(got ran, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("it lacks %q:\n%s%s", part, got.stdout, got.stderr)
			}
		}
	}
	says(m.run(t, nil, append(work, "--dry-run")...), "1  a      Fix `form.go`\n2  c", "b      waits for the run of a: both are likely to change form.go")
	says(m.run(t, nil, append(work, "--skip-permissions", "a", "c")...), "2 issues worked")
	const full = "No further issue begins: 2 of 2 requests or branches are open or expected (max-open-requests)."
	says(m.run(t, nil, append(work, "--dry-run")...), "Nothing to work.", full)
	says(m.run(t, nil, append(work, "--skip-permissions")...), "No issue was worked", full)
	says(m.run(t, nil, "status", "b"), "waits     until a is merged (ralph/a): both change form.go")
	m.write(t, ".ralph/config.yaml", "max-open-requests: 2\n")
	says(m.run(t, nil, "status"), full)
}
