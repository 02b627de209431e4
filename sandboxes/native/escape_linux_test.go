package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escapetest"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	escapetest.Run(t, func(*testing.T) sandboxes.Provider { return native.New(native.Config{}) }, escapetest.Options{})
}
