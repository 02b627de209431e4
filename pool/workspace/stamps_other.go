//go:build !linux

package workspace

// stampsChanges is implemented on Linux only.
func stampsChanges(string) bool { return false }
