package native_test

import "os"

// other runs the program that a test has started this one as: a client in a sandbox, or a ralph that will
// be killed.
func other() (int, bool) {
	if run := os.Getenv(crashing); run != "" {
		return untilKilled(run), true
	}
	if len(os.Args) == 3 && os.Args[1] == fetching {
		return fetch(os.Args[2]), true
	}
	return 0, false
}
