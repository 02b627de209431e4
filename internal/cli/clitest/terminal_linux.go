package clitest

import (
	"os"
	"testing"

	"github.com/ralph-pool/ralph/internal/ptytest"
)

// Terminal is one of so many columns, and what reads from it.
func Terminal(t *testing.T, columns uint16) (tty, screen *os.File) {
	t.Helper()
	return ptytest.New(t, 24, columns)
}
