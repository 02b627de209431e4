// Package gittest makes tests independent of how git is set up on the machine.
package gittest

import (
	"os"
	"strings"
)

// Isolate is for TestMain: git reads no configuration of the machine or its user, commits as Ada, and is Quiet.
func Isolate() {
	for _, kv := range append(Quiet(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	) {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
}

// Quiet is the environment in which git starts no second process after a commit or a push, only to see whether it is time to pack.
// Repositories of tests are small, and commits are many.
func Quiet() []string {
	return []string{
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=receive.autogc", "GIT_CONFIG_VALUE_1=false",
	}
}
