package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestAsOrdinaryUser runs the whole package again without root's rights, when it has them.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	sandboxtest.AsOrdinaryUser(t, "")
}
