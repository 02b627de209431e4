package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestFailedSweepIsLogged checks that the log of a sweep has the commands that ran, how they ended and why.
func TestFailedSweepIsLogged(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	broken := m.program(t, "broken", "echo no quota >&2; exit 3\n") + "/broken"
	got := m.run(t, nil, "work", "--sandbox=none", "--agent-command="+broken, "--gate=true", "--commit-author=A <a@b.c>",
		"--log-level=debug", "--log-format=json")
	if got.status != exit.Incomplete {
		t.Fatalf("got %+v", got)
	}
	type record struct {
		Level, Message, Time, Run, Issue, Outcome, Reason, Detail string
		Kind                                                      string `json:"event.kind"`
		Stage                                                     string `json:"event.stage"`
	}
	said := map[string]record{}
	for line := range strings.Lines(got.stderr) {
		var r record
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Level == "" || r.Time == "" || r.Message == "" {
			t.Errorf("%v: %s", err, line)
		}
		said[r.Message+" "+r.Kind+" "+r.Stage] = r
	}
	for _, want := range []string{"sweep started  ", "event started ", "event stage prepare", "event stage work", "event iteration ", "event ended "} {
		if _, ok := said[want]; !ok {
			t.Errorf("no record %q in\n%s", want, got.stderr)
		}
	}
	end := said["run ended  "]
	if end.Issue != "one" || end.Run == "" || end.Outcome != "failed" || !strings.Contains(end.Detail, "no quota") {
		t.Errorf("the end: %+v in\n%s", end, got.stderr)
	}
}
