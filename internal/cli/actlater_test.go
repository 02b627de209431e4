package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Commits that change a file that acts on later runs, because the configuration names it, are not merged without a person.
func TestWhatActsLaterIsNotMerged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, config, want string }{
		"folder of issues": {"issues/evil.md", "local: {dir: issues}\n", "issues/evil.md is protected (local.dir names it)"},
		"prompt":           {"docs/prompt.md", "prompt-file: docs/prompt.md\n", "docs/prompt.md is protected (prompt-file names it)"},
		"agent":            {"tools/agent.sh", "", "tools/agent.sh is protected (agent-command names it)"},
		"host command":     {"tools/prep.sh", "before: [sh tools/prep.sh]\n", "the checks themselves have changed: tools/prep.sh: a command on the host runs or reads it"},
		"other file":       {"tools/other.sh", "before: [sh tools/prep.sh]\nlocal: {dir: issues}\nprompt-file: docs/prompt.md\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".gitignore", ".ralph\n")
			m.write(t, "tools/prep.sh", "true\n")
			m.write(t, "tools/agent.sh", `cat >/dev/null; mkdir -p "$(dirname "$FILE")"; printf -- "---\nlabels: [no-human]\n---\n# Evil\n" >"$FILE"
git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'
`)
			m.write(t, "docs/prompt.md", "Solve it.\n")
			for _, folder := range []string{"issues", ".ralph/backlog"} {
				m.write(t, folder+"/a.md", "---\nlabels: [no-human]\n---\n# Add a\n")
			}
			m.commit(t)
			m.write(t, ".ralph/config.yaml", c.config)
			got := m.run(t, nil, "trust", "--yes")
			if got.status != 0 {
				t.Fatalf("%+v", got)
			}
			got = m.run(t, nil, "--sandbox=none", "--commit-author=A <a@b.c>", "work", "--gate=true", "--skip-permissions", "--publish=merge",
				"--agent-command=sh tools/agent.sh", "--agent-env=FILE="+c.file, "--max-attempts=1", "--max-iterations=1")
			all := strings.ReplaceAll(got.stdout+got.stderr, "\n", " ")
			merged := strings.Contains(all, "merged into m")
			if merged != (c.want == "") || !strings.Contains(all, c.want) || got.status == exit.Usage {
				t.Errorf("%+v", got)
			}
		})
	}
}
