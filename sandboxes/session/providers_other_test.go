//go:build !linux

package session_test

import "github.com/ralph-pool/ralph/sandboxes"

// providers returns the providers for the tests of a session.
func providers() []sandboxes.Provider {
	return []sandboxes.Provider{sandboxes.NewNone(sandboxes.NoneConfig{})}
}
