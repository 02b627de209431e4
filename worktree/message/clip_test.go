package message

import (
	"strings"
	"testing"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                             "",
		"a subject":                    "a subject",
		"broken \xff":                  "broken \uFFFD",
		strings.Repeat("x", 1024):      strings.Repeat("x", 1024),
		strings.Repeat("x", 1<<20):     strings.Repeat("x", 1024) + "…",
		"x" + strings.Repeat("é", 600): "x" + strings.Repeat("é", 511) + "…",
		strings.Repeat("\x80", 2000):   "\uFFFD",
	} {
		if got := Clip(line); got != want {
			t.Errorf("Clip(%.40q) = %.60q… of %d bytes", line, got, len(got))
		}
	}
}
