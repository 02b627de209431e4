package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// No line ends in a blank, whatever an event lacks.
func TestLogLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newApp(Host{Stdout: &out, Stderr: &bytes.Buffer{}})
	for _, e := range []pool.Event{
		{Kind: pool.EventEnded, Outcome: pool.Succeeded}, {Kind: pool.EventEnded, Outcome: pool.Failed, Text: "why"}, {Kind: pool.EventAgent},
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
