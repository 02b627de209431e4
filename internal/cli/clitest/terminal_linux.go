package clitest

import (
	"os"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ptytest"
)

// Shown is what a terminal shows up to a text, with the line ends of a program.
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

// Terminal is one of so many columns, and what reads from it.
func Terminal(t *testing.T, columns uint16) (tty, screen *os.File) {
	t.Helper()
	return ptytest.New(t, 24, columns)
}
