//go:build !linux

package landlock_test

// other does nothing: no test starts this program again.
func other() (int, bool) { return 0, false }
