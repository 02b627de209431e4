package look

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// No line ends in a blank, whatever an event lacks.
func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := compose.New(compose.Host{Stdout: &out, Stderr: &bytes.Buffer{}})
	warning := func(n sandboxes.Notice) journal.Event {
		return journal.Event{Kind: journal.EventWarning, Text: "sandbox: " + n.Text, Subject: n.Subject}
	}
	for _, e := range []journal.Event{
		{Kind: journal.EventEnded, Outcome: journal.Succeeded}, {Kind: journal.EventEnded, Outcome: journal.Failed, Reason: &journal.Reason{Code: journal.ReasonLoop, Detail: "why"}}, {Kind: journal.EventAgent},
		warning(sandboxes.PIDsNotice(1, 9)), warning(sandboxes.MemoryNotice(2, 64<<20)),
		{Kind: journal.EventUsage, Iteration: 2, Elapsed: 3, Usage: &agents.Usage{Input: 5, CacheRead: 6, Output: 7}},
		{Kind: journal.EventUsage, Iteration: 3, Elapsed: 1, Usage: &agents.Usage{}},
	} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := logLine(a, line, nil); err != nil {
			t.Fatal(err)
		}
	}
	time := out.String()[:8]
	if want := time + "  ended       succeeded\n" + time + "  ended       failed: why\n" + time + "  agent\n" +
		time + "  warning     sandbox: 1 process was killed at the process limit of 9; raise pids if they need more\n" +
		time + "  warning     sandbox: 2 processes were killed at the memory limit of 64 MB; raise memory-mb if they need more\n" + time + "  iteration   2 ended after 3s; cost unknown; 5 tokens in, 6 from cache, 7 out\n" +
		time + "  iteration   3 ended after 1s; the agent reported no usage\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
