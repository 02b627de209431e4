package native_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestFilesOfCommands(t *testing.T) {
	t.Parallel()
	sandboxtest.FilesOfCommands(t, native.New(native.Config{}))
}
