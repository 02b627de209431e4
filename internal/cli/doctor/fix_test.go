package doctor

import (
	"testing"
)

func TestFixFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const fix = "make that folder, or name another: ralph doctor"
	for width, want := range map[int]string{
		0:  "                    fix: " + fix,
		60: "                    fix: make that folder, or name another:\n                         ralph doctor",
	} {
		if got := fixLine(fix, width); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
}
