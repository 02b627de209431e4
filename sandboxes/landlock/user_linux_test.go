package landlock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestRootIsRefused: nothing would limit root's processes.
func TestRootIsRefused(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return
	}
	if err := landlock.New(landlock.Config{}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing limits root's processes") {
		t.Errorf("Check gives %v", err)
	}
}

// TestAsOrdinaryUser runs the whole package again as an ordinary user, if this process is root.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	sandboxtest.AsOrdinaryUser(t, wanted)
}
