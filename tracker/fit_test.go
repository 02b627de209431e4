package tracker

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzFit(f *testing.F) {
	f.Add("```\nx\n```", uint8(10))
	f.Add(strings.Repeat("a\n", 200), uint8(200))
	f.Add("````\n"+strings.Repeat("漢", 200), uint8(0))
	f.Fuzz(func(t *testing.T, text string, more uint8) {
		limit := 300 + int(more)
		got := Fit(text, limit)
		if len(got) > limit {
			t.Errorf("%d bytes, want at most %d", len(got), limit)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Error("a rune was cut")
		}
		if again := Fit(got, limit); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	})
}
