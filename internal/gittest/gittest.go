// Package gittest makes tests independent of how git is set up on the machine.
package gittest

import "os"

// Isolate is for TestMain: git reads no configuration of the machine or its user, and commits as Ada.
func Isolate() {
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
}
