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

// The built-in agents have distinct names, and the first is the default.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	if names := agents.NewRegistry(agents.Builtin()...).Names(); names[0] != "claude-code" {
		t.Errorf("names %q, want claude-code first", names)
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
	for want, c := range map[string]struct {
		agent   agents.Agent
		options agents.Options
	}{
		`agent claude-code: effort "hihg": use one of low, medium, high, xhigh, max; did you mean "high"?`:                          {agents.Claude{}, agents.Options{Effort: "hihg"}},
		`agent claude-code: argument --model: use the option model instead`:                                                         {agents.Claude{}, agents.Options{Args: []string{"--model=x"}}},
		`agent claude-code: argument -p: ralph sets this flag itself; leave it out`:                                                 {agents.Claude{}, agents.Options{Args: []string{"-p"}}},
		`agent claude-code: environment "A B": use NAME=value`:                                                                      {agents.Claude{}, agents.Options{Env: []string{"A B=secret"}}},
		`agent codex: permission mode "read": use one of read-only, workspace-write, danger-full-access; did you mean "read-only"?`: {agents.Codex{}, agents.Options{PermissionMode: "read"}},
		`agent codex: a command is not supported; the program is codex`:                                                             {agents.Codex{}, agents.Options{Command: []string{"x"}}},
		`agent command: no command; name the program and its arguments`:                                                             {agents.Command{}, agents.Options{}},
		`agent command: a model is not supported; put it into the command`:                                                          {agents.Command{}, agents.Options{Command: []string{"x"}, Model: "m"}},
		`agent command: effort is not supported; put it into the command`:                                                           {agents.Command{}, agents.Options{Command: []string{"x"}, Effort: "low"}},
	} {
		if err := agents.Check(c.agent, c.options); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
