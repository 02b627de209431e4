package landlock_test

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/attack"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
)

// TestNothingElseEscapes runs every attack. Exactly those that are documented as weaknesses must succeed.
func TestNothingElseEscapes(t *testing.T) {
	t.Parallel()
	escape.Run(t, attack.All(), func(escape.T) sandboxes.Provider { return landlock.New(landlock.Config{}) },
		escape.Options{InPlace: true, PollsProcesses: true, Weak: escape.Documented(sandboxes.AccessRules)})
}
