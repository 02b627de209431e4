// Package gittest makes tests independent of the machine's git configuration.
package gittest

import (
	"os"
	"strings"
)

// Isolate is meant for TestMain. After it, git reads no system or user configuration, commits as Ada, and runs with Quiet.
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

// Quiet returns variables that stop git from starting automatic maintenance after commits and pushes. Test repositories are
// small and have many commits.
func Quiet() []string {
	return []string{
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=receive.autogc", "GIT_CONFIG_VALUE_1=false",
	}
}
