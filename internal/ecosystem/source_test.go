package ecosystem_test

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

func TestIsSource(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"a/b.go": true, "x.mjs": true, "ci/a.sh": true, "Makefile": true, "a.png": false, "README.md": false, "data.bin": false,
	} {
		if got := ecosystem.IsSource(file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}
