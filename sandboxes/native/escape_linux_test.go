package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/attack"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	escape.Run(t, attack.All(), func(escape.T) sandboxes.Provider { return native.New(native.Config{}) }, escape.Options{})
}

func TestNothingEscapesOverLowerFolder(t *testing.T) {
	t.Parallel()
	escape.Run(t, attack.All(), func(escape.T) sandboxes.Provider { return native.New(native.Config{}) }, escape.Options{Layered: true})
}
