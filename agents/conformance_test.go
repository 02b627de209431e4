package agents_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/agents/agenttest"
)

func recordedLines(t testing.TB, folder, name string) []string {
	t.Helper()
	r := loadRecordings(t, folder, name)[0]
	return strings.Split(string(bytes.TrimSpace(r.stdout)), "\n")
}

func claudeBulk(n int) []byte {
	return fmt.Appendf(nil, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"%s"}]},"session_id":"s"}`,
		strings.Repeat(`row \"quoted\" \\ \n 漢`, n/24))
}

func codexBulk(n int) []byte {
	return fmt.Appendf(nil, `{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"seq 9","aggregated_output":"%s","exit_code":0}}`,
		strings.Repeat(`row \"quoted\" \\ \n 漢`, n/24))
}

// TestConformance: every built-in agent passes the suite.
func TestConformance(t *testing.T) {
	changedOptions := func(change func(*agents.Options)) agents.Options {
		o := agents.Options{Command: []string{"./agent.sh"}}
		change(&o)
		return o
	}
	subjects := map[agents.Agent]agenttest.Subject{
		agents.Claude{}: {
			Refused: map[string]agents.Options{
				"model":                          {Model: "--dangerously-skip-permissions"},
				"effort":                         {Effort: "hihg"},
				"permission mode":                {PermissionMode: "yolo"},
				"command":                        {Command: []string{"other"}},
				"--output-format":                {Args: []string{"--output-format=text"}},
				"--dangerously-skip-permissions": {Args: []string{"--dangerously-skip-permissions"}},
			},
			Stream:  recordedLines(t, "claude", "write-commit"),
			Session: "412129a4-df73-4bf7-9ebe-7a279d4af101",
			Silent:  true,
			Bulk:    claudeBulk,
		},
		agents.Codex{}: {
			Refused: map[string]agents.Options{
				"model":            {Model: "a b"},
				"effort":           {Effort: `low" x="`},
				"permission mode":  {PermissionMode: "plan"},
				"command":          {Command: []string{"other"}},
				"--json":           {Args: []string{"--json"}},
				"skip permissions": {Args: []string{"--yolo"}},
			},
			Stream:  recordedLines(t, "codex", "multi"),
			Session: "01a1fb35-6121-7612-a5db-bc6768247b48",
			Silent:  true,
			Bulk:    codexBulk,
		},
		agents.Command{}: {
			Options: agents.Options{Command: []string{"./agent.sh", "--fast"}},
			Refused: map[string]agents.Options{
				"command":         {},
				"model":           changedOptions(func(o *agents.Options) { o.Model = "m" }),
				"effort":          changedOptions(func(o *agents.Options) { o.Effort = "low" }),
				"permission mode": changedOptions(func(o *agents.Options) { o.PermissionMode = "plan" }),
			},
			Stream: []string{"working", "done <promise>COMPLETE</promise>"},
		},
	}
	for _, a := range agents.Builtin() {
		t.Run(a.Name(), func(t *testing.T) {
			s, ok := subjects[a]
			if !ok {
				t.Fatal("it has no subject here")
			}
			s.Agent = a
			agenttest.Run(t, s)
		})
	}
}
