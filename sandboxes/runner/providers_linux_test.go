package runner_test

import (
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// providers returns the providers for the tests of a runner.
func providers() []sandboxes.Provider {
	return []sandboxes.Provider{sandboxes.NewNone(sandboxes.NoneConfig{}), native.New(native.Config{})}
}
