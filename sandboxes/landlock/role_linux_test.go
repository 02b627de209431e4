package landlock_test

import (
	"os"

	"github.com/ralph-pool/ralph/sandboxes/escapetest"
)

// other makes this program what a test has started it to be: the attacker or a browser in a sandbox, or a ralph that
// will be killed.
func other() (int, bool) {
	if run := os.Getenv(crashing); run != "" {
		return untilKilled(run), true
	}
	if len(os.Args) >= 3 && os.Args[1] == acting {
		return act(os.Args[2], os.Args[3:]), true
	}
	return escapetest.Attack(os.Args, os.Stdout)
}
