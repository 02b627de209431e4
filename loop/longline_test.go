package loop

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// TestMemoryOfALongLine prints one line without an end: each run of many holds little of it.
//
//nolint:paralleltest // others allocate too
func TestMemoryOfALongLine(t *testing.T) {
	for _, agent := range []agents.Agent{agents.Command{}, agents.Claude{}, agents.Codex{}} {
		for _, begin := range []string{"", "[", `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"`} {
			tr := newTranscript(1, Config{Agent: agent, Signals: []string{"done"}}, &observer{fn: func(Event) {}})
			piece := bytes.Repeat([]byte("["), 64<<10)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = tr.lines.Write([]byte(begin))
			for range 2000 {
				_, _ = tr.lines.Write(piece)
			}
			tr.finish(agents.Ending{})
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 100 {
				t.Errorf("%s, a line that begins with %q: %d MiB in all", agent.Name(), begin, got)
			}
		}
	}
}
