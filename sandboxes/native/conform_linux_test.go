package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return native.New(native.Config{}) }, sandboxtest.Options{})
}
