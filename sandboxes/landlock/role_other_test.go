//go:build !linux

package landlock_test

// other does nothing: no test starts this program anew.
func other() (int, bool) { return 0, false }
