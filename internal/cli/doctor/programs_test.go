package doctor

import (
	"testing"
)

func TestScriptOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"./check.sh --all": "check.sh", "sh ci/check.sh": "ci/check.sh", "bash -c 'x/y'": "", "go test ./...": "", "": "",
		"/usr/bin/make x": "", "../up.sh": "", "$HOME/x.sh": "", "a/../b/c.sh": "b/c.sh", "sh": "",
	} {
		if got := scriptOf(in); got != want {
			t.Errorf("scriptOf(%q) = %q, want %q", in, got, want)
		}
	}
}
