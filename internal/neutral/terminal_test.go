package neutral

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä €\n\tx":          "plain ä €\n\tx",
		"\x1b[31mred\x1b[0m":      "[31mred[0m",
		"\x1b]0;title\x07x":       "]0;titlex",
		"a\rb\x00c\x7fd":          "abcd",
		"\u009b31mC1":             "31mC1",
		"\u202eevil\u202c \u2066": "evil ",
		"zero\u200bwidth\ufeff":   "zerowidth",
		"\U000e0041tag":           "tag",
		"a\xffb":                  "ab",
		"👩\u200d💻":                "👩\u200d💻",
	} {
		if got := Terminal(in); got != want {
			t.Errorf("Terminal(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Line("a\r\nb\tc\nralph: x"); got != "a b c ralph: x" {
		t.Errorf("got %q", got)
	}
}

// FuzzTerminal: nothing that a terminal acts on survives, and cleaning is idempotent.
func FuzzTerminal(f *testing.F) {
	f.Add("\x1b[2J\u009b1m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := Terminal(s)
		if !utf8.ValidString(got) || Terminal(got) != got {
			t.Errorf("Terminal(%q) = %q", s, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("Terminal(%q) keeps a control character at %d", s, i)
		}
		if strings.ContainsAny(Line(s), "\n\t\r") {
			t.Errorf("Line(%q) is not one line", s)
		}
	})
}
