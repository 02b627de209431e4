package tracker

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		count          int
	}{
		{"plain", "Fix it,\n\tplease: naïve 漢字 ☕ العربية", "Fix it,\n\tplease: naïve 漢字 ☕ العربية", 0},
		{"windows", "a\r\nb\r\n", "a\nb\n", 0},
		{"lone return", "shown\rhidden", "shown\nhidden", 1},
		{"zero width", "a\u200bb\u200cc\u200dd\ufeffe\u2060f", "abcdef", 5},
		{"bidi", "user\u202egnp.exe\u202c \u2066x\u2069 \u200e\u200f\u061c", "usergnp.exe x ", 7},
		{"tags", "ok\U000e0001\U000e0049\U000e0067\U000e007f", "ok", 4},
		{"controls", "a\x00b\x1b[31mc\x7fd\u009be\x08", "ab[31mcde", 5},
		{"line ends", "a\u2028b\u2029c\u0085d", "a\nb\nc\nd", 3},
		{"soft hyphen", "pass\u00adword", "password", 1},
		{"fillers", "a\u3164b\u115fc\uffa0d\u034fe\u17b4f", "abcdef", 5},
		{"emoji look", "♥\ufe0f 1\ufe0f\u20e3", "♥\ufe0f 1\ufe0f\u20e3", 0},
		{"data in selectors", "♥\ufe0f\ufe0f\ufe00\ufe01\U000e0100\U000e01ef", "♥\ufe0f", 5},
		{"ideographic variant", "葛\U000e0100", "葛\U000e0100", 0},
		{"drawn format characters", "\u0600\u06dd", "\u0600\u06dd", 0},
		{"not UTF-8", "a\xffb", "a\ufffdb", 1},
		{"noncharacter", "a\uffffb\U0001ffff", "ab", 2},
		{"annotation", "a\ufff9b\ufffac\ufffb", "abc", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, n := Clean(c.in); got != c.want || n != c.count {
				t.Errorf("Clean(%+q) = %+q, %d, want %+q, %d", c.in, got, n, c.want, c.count)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u200bb\r\nc\rd\xff\U000e0041♥\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		got, n := Clean(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Clean(%q) = %q is not UTF-8", s, got)
		}
		if (n == 0) != (got == strings.ReplaceAll(s, "\r\n", "\n")) {
			t.Fatalf("Clean(%q) = %q counts %d", s, got, n)
		}
		if again, m := Clean(got); again != got || m != 0 {
			t.Fatalf("Clean(%q) = %q, cleaned again %q", s, got, again)
		}
		for _, r := range got {
			if unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0xe0000 && r <= 0xe007f {
				t.Fatalf("Clean(%q) keeps %U", s, r)
			}
		}
	})
}
