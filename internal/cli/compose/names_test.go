package compose

import (
	"testing"
)

// A name that cleaning changes is shown with its key.
func TestDistinctNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"fix-login": "fix-login", "Fix login": "Fix login", "é": "é", "fix-login ": "fix-login (k)", " fix-login": "fix-login (k)",
		"fix\u200b-login": "fix-login (k)", "fix-login\x1b": "fix-login (k)", "fix\u00a0login": "fix\u00a0login (k)", "a\nb": "a b (k)",
	} {
		if got := distinct(name, "k"); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
