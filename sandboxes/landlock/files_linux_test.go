package landlock_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestFilesOfCommands(t *testing.T) {
	t.Parallel()
	sandboxtest.FilesOfCommands(t, landlock.New(landlock.Config{}))
}
