package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

// TestLiveLines follows runs: what each is doing is one line that fits the terminal.
func TestLiveLines(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	height := 24
	l := &live{ui: newPrinter(Host{}), name: func(key string) string { return key }, size: func() (int, int) { return 60, height }}
	see := func(run string, e journal.Event) {
		e.Run, e.Key, e.Time = run, "issue-"+run, start
		l.event(e)
	}
	want := func(lines ...string) {
		t.Helper()
		if diff := cmp.Diff(lines, l.lines(start.Add(65*time.Second))); diff != "" {
			t.Error(diff)
		}
	}
	want()
	see("a", journal.Event{Kind: journal.EventStarted})
	see("bb", journal.Event{Kind: journal.EventStage, Stage: journal.StageWork})
	want("  issue-a   starting  1m5s", "  issue-bb  work  1m5s")
	see("a", journal.Event{Kind: journal.EventIteration, Iteration: 2})
	see("a", journal.Event{Kind: journal.EventAgent, Text: "Bash\nls \x1b[2J" + "a very long command that no terminal has room for"})
	see("bb", journal.Event{Kind: journal.EventUsage, Usage: &agents.Usage{CostUSD: 0.4}})
	see("bb", journal.Event{Kind: journal.EventUsage, Usage: &agents.Usage{CostUSD: 0.1}})
	see("bb", journal.Event{Kind: journal.EventGate, Text: "go test ./..."})
	want("  issue-a   iteration 2  1m5s  Bash ls [2Ja very long comm…", "  issue-bb  work  1m5s  $0.50  gate go test ./...")
	see("bb", journal.Event{Kind: journal.EventGate, Text: "go test ./...", Check: &loop.Check{}})
	see("bb", journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "make"})
	want("  issue-a   iteration 2  1m5s  Bash ls [2Ja very long comm…", "  issue-bb  work  1m5s  $0.50  gate on a clean checkout: m…")
	see("bb", journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "make", Check: &loop.Check{}})
	see("a", journal.Event{Kind: journal.EventUsage, Usage: &agents.Usage{Input: 9000, CacheWrite: 2000, Output: 1000, CacheRead: 5000}})
	see("a", journal.Event{Kind: journal.EventStage, Stage: journal.StageVerify})
	want("  issue-a   verify  1m5s  12k tok", "  issue-bb  work  1m5s  $0.50")
	see("a", journal.Event{Kind: journal.EventEnded})
	see("z", journal.Event{Kind: journal.EventStage, Stage: journal.StagePublish})
	see("z", journal.Event{Kind: journal.EventDeferred})
	want("  issue-bb  work  1m5s  $0.50")
	for _, run := range []string{"c", "d", "e"} {
		see(run, journal.Event{Kind: journal.EventStarted})
	}
	height = 6
	want("  issue-bb  work  1m5s  $0.50", "  issue-c   starting  1m5s", "  and 2 more")
	var none *live
	none.event(journal.Event{})
	none.stop()
}

// TestBlockStaysBelow: what is printed stands above the block, which is written again only when it changes.
func TestBlockStaysBelow(t *testing.T) {
	t.Parallel()
	var screen bytes.Buffer
	w := newCheckedWriter(&screen)
	w.block([]string{"one", "two"})
	w.block([]string{"one", "two"})
	if n, err := w.Write([]byte("news\n")); n != 5 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	w.block([]string{"one"})
	w.block(nil)
	if got, want := screen.String(), "\x1b[?7lone\ntwo\n\x1b[?7h\x1b[2A\r\x1b[Jnews\n\x1b[?7lone\n\x1b[?7h\x1b[1A\r\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
