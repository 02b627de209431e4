package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// No line ends in a blank, whatever an event lacks.
func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newApp(Host{Stdout: &out, Stderr: &bytes.Buffer{}})
	for _, e := range []journal.Event{
		{Kind: journal.EventEnded, Outcome: journal.Succeeded}, {Kind: journal.EventEnded, Outcome: journal.Failed, Reason: &journal.Reason{Code: journal.ReasonLoop, Detail: "why"}}, {Kind: journal.EventAgent},
	} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.logLine(line); err != nil {
			t.Fatal(err)
		}
	}
	time := out.String()[:8]
	if want := time + "  ended       succeeded\n" + time + "  ended       failed why\n" + time + "  agent\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
