package look

import (
	"io"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The text below the table of costs is wrapped between words.
func TestCostFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tty, shown := clitest.Terminal(t, 40)
	p := screen.New(tty, io.Discard, nil)
	costTable(p, addUp([]journal.Record{{Run: journal.Run{Kind: journal.KindIssue, Agent: "a"}}}, "agent"))
	p.Printf("end\n")
	got := clitest.Shown(t, shown, "end\n")
	if want := "The cost of 1 run is unknown or\nincomplete: neither the agent nor a\nprice gives it.\nend\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
