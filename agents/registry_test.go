package agents_test

import (
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := agents.NewRegistry(agents.Claude{}, agents.Codex{}, agents.Command{})
	if got, want := r.Names(), []string{"claude-code", "codex", "command"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if a, err := r.Lookup("codex"); err != nil || a != (agents.Codex{}) {
		t.Errorf("codex: %v, %v", a, err)
	}
	for name, want := range map[string]string{
		"claude": `unknown agent "claude": use one of claude-code, codex, command; did you mean "claude-code"?`,
		"codx":   `unknown agent "codx": use one of claude-code, codex, command; did you mean "codex"?`,
		"gemini": `unknown agent "gemini": use one of claude-code, codex, command`,
		"":       `unknown agent "": use one of claude-code, codex, command`,
	} {
		if _, err := r.Lookup(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestRegistryPanicsOnDuplicates(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("two agents of one name are accepted")
		}
	}()
	agents.NewRegistry(agents.Codex{}, agents.Codex{})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`agent claude-code: --effort "hihg": use one of low, medium, high, xhigh, max; did you mean "high"?`:                          agents.Claude{}.Check(agents.Options{Effort: "hihg"}),
		`agent claude-code: --agent-args --model: use --model instead`:                                                                agents.Claude{}.Check(agents.Options{Args: []string{"--model=x"}}),
		`agent claude-code: --agent-args -p: ralph sets this flag itself; leave it out`:                                               agents.Claude{}.Check(agents.Options{Args: []string{"-p"}}),
		`agent claude-code: --agent-env "A B": use NAME or NAME=value`:                                                                agents.Claude{}.Check(agents.Options{Env: []string{"A B=secret"}}),
		`agent codex: --permission-mode "read": use one of read-only, workspace-write, danger-full-access; did you mean "read-only"?`: agents.Codex{}.Check(agents.Options{PermissionMode: "read"}),
		`agent command: no program; set --agent-command 'PROGRAM ARG…'`:                                                               agents.Command{}.Check(agents.Options{}),
		`agent command: --model is not supported; put it into --agent-command`:                                                        agents.Command{}.Check(agents.Options{Command: []string{"x"}, Model: "m"}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
