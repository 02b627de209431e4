package runner_test

import (
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// providers are those that every test of a runner runs on.
func providers() []sandboxes.Provider {
	return []sandboxes.Provider{sandboxes.NewNone(sandboxes.NoneConfig{}), native.New(native.Config{})}
}
