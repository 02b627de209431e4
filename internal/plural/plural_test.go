package plural

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		n    int
		what string
	}{"1 canary": {1, "canary"}, "2 canaries": {2, "canary"}, "0 issues": {0, "issue"}, "2 days": {2, "day"}} {
		if got := Of(c.n, c.what); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
