package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestAsOrdinaryUser runs the whole package again as an ordinary user, if this process is root.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	sandboxtest.AsOrdinaryUser(t, "")
}
