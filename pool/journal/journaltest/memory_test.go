package journaltest_test

import (
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(*testing.T) journal.Store { return &journaltest.Memory{} })
}
