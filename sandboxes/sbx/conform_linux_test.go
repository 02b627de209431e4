package sbx_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// Only sbx itself is simulated: the scripts, the shell and the processes are real.
func TestConformsWithShim(t *testing.T) {
	t.Parallel()
	p, _ := withShim(t, nil)
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return p }, sandboxtest.Options{})
}

func TestLiveWithShim(t *testing.T) {
	t.Parallel()
	p, _ := withShim(t, nil)
	exercise(t, p)
}
