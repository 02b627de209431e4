//go:build !linux

package session_test

import "github.com/ralph-pool/ralph/sandboxes"

// providers are those that every test of a session runs on.
func providers() []sandboxes.Provider {
	return []sandboxes.Provider{sandboxes.NewNone(sandboxes.NoneConfig{})}
}
