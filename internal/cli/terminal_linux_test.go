package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// terminal is one of so many columns, and what reads from it.
func terminal(t *testing.T, columns uint16) (tty, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return tty, screen
}

// What init proposes is broken between words.
func TestInitFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tty, screen := terminal(t, 40)
	a := compose.New(compose.Host{Stdout: tty, Stderr: io.Discard})
	printChecks(a, scaffold.Choices{Agent: "codex", Sandbox: "none", Gate: []string{"go vet ./... && go test ./... && staticcheck ./..."}})
	a.UI.Printf("end\n")
	var got string
	for text := make([]byte, 4096); !strings.Contains(got, "end\r\n"); {
		n, err := screen.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		got += string(text[:n])
	}
	got = strings.ReplaceAll(got, "\r", "")
	if want := "  gate           go vet ./... && go test\n                 ./... && staticcheck\n                 ./...\nend\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each stream is coloured by what reads it: status 2>/dev/null has its colours, and status | less has none.
func TestColourOfEachStream(t *testing.T) {
	t.Parallel()
	tty, _ := terminal(t, 80)
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
		p := screen.New(c.out, c.err, c.env)
		if got := [2]bool{p.Paint(screen.Red, "x") != "x", p.PaintErr(screen.Red, "x") != "x"}; got != c.colours {
			t.Errorf("%s: %v, want %v", name, got, c.colours)
		}
	}
}
