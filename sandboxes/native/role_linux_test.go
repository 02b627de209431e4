package native_test

import "os"

// other runs this test program as a command of a sandbox, if its arguments say so.
func other() (int, bool) {
	if len(os.Args) == 3 && os.Args[1] == fetching {
		return fetch(os.Args[2]), true
	}
	return 0, false
}
