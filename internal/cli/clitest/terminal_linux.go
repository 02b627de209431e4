package clitest

import (
	"os"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ptytest"
)

// Shown reads from a terminal's screen until end appears, and returns all of it, with "\n" for "\r\n".
func Shown(t *testing.T, screen *os.File, end string) string {
	t.Helper()
	var got string
	for text := make([]byte, 4096); !strings.Contains(got, end); {
		n, err := screen.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		got = strings.ReplaceAll(got+string(text[:n]), "\r\n", "\n")
	}
	return got
}

// Terminal returns both ends of a pseudo terminal of 24 lines: tty for the program, screen to read what it shows.
func Terminal(t *testing.T, columns uint16) (tty, screen *os.File) {
	t.Helper()
	return ptytest.New(t, 24, columns)
}
