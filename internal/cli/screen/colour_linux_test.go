package screen

import (
	"io"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/clitest"
)

// Each stream is coloured by its own terminal: `status 2>/dev/null` has colours, and `status | less` has none.
func TestColourOfEachStream(t *testing.T) {
	t.Parallel()
	tty, _ := clitest.Terminal(t, 80)
	for name, c := range map[string]struct {
		out, err io.Writer
		env      []string
		colours  [2]bool
	}{
		"both":        {tty, tty, nil, [2]bool{true, true}},
		"output":      {tty, io.Discard, nil, [2]bool{true, false}},
		"errors":      {io.Discard, tty, nil, [2]bool{false, true}},
		"not wanted":  {tty, tty, []string{"NO_COLOR=1"}, [2]bool{}},
		"no terminal": {io.Discard, io.Discard, nil, [2]bool{}},
	} {
		p := New(c.out, c.err, c.env)
		if got := [2]bool{p.Paint(Red, "x") != "x", p.PaintErr(Red, "x") != "x"}; got != c.colours {
			t.Errorf("%s: %v, want %v", name, got, c.colours)
		}
	}
}
