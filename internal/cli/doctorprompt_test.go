package cli

import (
	"strings"
	"testing"
)

// TestDoctorReadsThePrompt checks that an unusable template is a failure, and one that lacks information for the agent a warning.
func TestDoctorReadsThePrompt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		template, signal string
		want             []string
		not              string
	}{
		"none":            {"", "", []string{"ok    prompt        the built-in one"}, ""},
		"whole":           {"Do {{issue}}, then say {{signal}}.\n", "", []string{"ok    prompt        ROOT/repo/.ralph/prompt.md"}, ""},
		"unknown key":     {"Do {{isue_key}} {{signal}}\n", "", []string{"fail  prompt        ROOT/repo/.ralph/prompt.md:1: unknown key {{isue_key}}; did you mean {{issue_key}}?"}, "ok    prompt"},
		"no signal":       {"Do {{issue_title}}.\n", "", []string{"warn  prompt        ROOT/repo/.ralph/prompt.md has no {{signal}}"}, "does not use the issue"},
		"its own signal":  {"Do {{issue_title}}, say READY.\n", "READY", []string{"ok    prompt"}, ""},
		"no issue":        {"Work. {{signal}}\n", "", []string{"warn  prompt        ROOT/repo/.ralph/prompt.md does not use the issue"}, "has no {{signal}}"},
		"by the variable": {"Work on !`echo $RALPH_ISSUE_KEY`. {{signal}}\n", "", []string{"ok    prompt"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
			if c.template != "" {
				m.write(t, ".ralph/prompt.md", c.template)
			}
			m.commit(t)
			args := []string{"doctor", "--sandbox=none", "--agent-command=true"}
			if c.signal != "" {
				args = append(args, "--completion-signal", c.signal)
			}
			got := m.run(t, nil, args...)
			for _, want := range c.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("no %q in\n%s", want, got.stdout)
				}
			}
			if c.not != "" && strings.Contains(got.stdout, c.not) {
				t.Errorf("%q in\n%s", c.not, got.stdout)
			}
		})
	}
}
