package sbx_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// Everything but sbx itself is real: the scripts, the shell that runs them, and the processes they end.
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
