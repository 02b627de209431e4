package landlock_test

import "os"

// other runs the program that a test has started this one as: a client in a sandbox.
func other() (int, bool) {
	if len(os.Args) >= 3 && os.Args[1] == acting {
		return act(os.Args[2], os.Args[3:]), true
	}
	return 0, false
}
