package message

import (
	"strings"
	"testing"
)

func TestControls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ encoding, names, message, want string }{
		"nothing":                  {"", "Ann", "One\n\n\ttwo\r\n", "One\n\n\ttwo\r\n"},
		"escape sequence":          {"", "Ann", "One\x1b[2J\x1b]0;title\a", "One[2J]0;title"},
		"line overwritten":         {"", "Ann", "rm -rf\rls", "rm -rfls"},
		"C1 in UTF-8":              {"", "Ann", "One\u009b31m", "One31m"},
		"reordered":                {"", "Ann", "\u061cOne \u202etxt\u202c \u2067a\u2069\u200f", "One txt a"},
		"reordered in UTF-16":      {"UTF-16LE", "Ann", "a\x00\x2e\x20b\x00", "ab"},
		"reordered in GB 18030":    {"gb18030", "Ann", "a\x81\x36\xa7\x31b", "ab"},
		"from right to left":       {"", "Ann", "\u05d0\u05d1 \u0627 \U0001f469\u200d\U0001f4bb", "\u05d0\u05d1 \u0627 \U0001f469\u200d\U0001f4bb"},
		"name reordered":           {"", "An\u202en", "One", "One"},
		"raw C1":                   {"", "Ann", "One\x9b31m", "One31m"},
		"UTF-8 with such bytes":    {"", "Ann", "Ü 能力 \u201c", "Ü 能力 \u201c"},
		"other raw bytes":          {"", "Ann", "F\xfcr", "F\xfcr"},
		"C1 in Latin-1":            {"ISO-8859-1", "Ann", "F\xfcr\x9b31m", "F\xfcr31m"},
		"quotes in CP1252":         {"windows-1252", "Ann", "\x93F\xfcr\x94", "\x93F\xfcr\x94"},
		"escape in CP1252":         {"windows-1252", "Ann", "\x93F\xfcr\x94\x1b[m", "\x93F\xfcr\x94[m"},
		"hidden in UTF-16":         {"UTF-16LE", "Ann", "a\x00\x1b\x00", "a"},
		"ISO-2022-JP":              {"ISO-2022-JP", "Ann", "\x1b$B4A;z\x1b(B", "\x1b$B4A;z\x1b(B"},
		"raw C1, encoding unknown": {"klingon", "Ann", "One\x9b31m\x1b[m", "One31m[m"},
		"in a name":                {"", "An\x1b[8mn", "One", "One"},
	} {
		header := ""
		if tt.encoding != "" {
			header = "\nencoding " + tt.encoding
		}
		object := "tree x\nauthor " + tt.names + " <a> 1 +0000\ncommitter b <b> 1 +0000" + header + "\n\n" + tt.message
		got := Edit{}.Apply(object)
		_, text, _ := strings.Cut(got, "\n\n")
		if text != tt.want {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
		dirty := got != object
		if Controls(tt.encoding, tt.names, tt.message) != dirty || dirty != (tt.want != tt.message || tt.names != "Ann") {
			t.Errorf("%s: controls %v, changed %v", name, !dirty, dirty)
		}
		if again := (Edit{}).Apply(got); again != got {
			t.Errorf("%s: changed again: %q", name, again)
		}
	}
}
