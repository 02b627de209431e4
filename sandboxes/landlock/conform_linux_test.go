package landlock_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return landlock.New(landlock.Config{}) }, sandboxtest.Options{})
}

func TestGitWorksInside(t *testing.T) {
	t.Parallel()
	sandboxtest.Git(t, landlock.New(landlock.Config{}))
}
