package tracker_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		verb tracker.Verb
		text string
		ok   bool
	}{
		"/ralph retry":                          {"retry", "", true},
		"/ralph  RETRY now, please":             {"retry", "now, please", true},
		"/ralph fix the docs":                   {"fix", "the docs", true},
		"/ralph\tfix\tthe docs\r\n\r\nand more": {"fix", "the docs\n\nand more", true},
		"/ralph fix\nthe docs":                  {"fix", "the docs", true},
		"/ralph stop\u200b":                     {"stop", "", true},
		"/ralph":                                {"", "", true},
		"/ralph\n\nretry":                       {"", "retry", true},
		"/ralph dance":                          {"dance", "", true},
		"/ralphretry":                           {},
		"/Ralph retry":                          {},
		" /ralph retry":                         {},
		"\n/ralph retry":                        {},
		"please\n/ralph retry":                  {},
		"> /ralph retry":                        {},
		"`/ralph retry`":                        {},
		"":                                      {},
	} {
		verb, text, ok := tracker.ParseCommand(in)
		if verb != want.verb || text != want.text || ok != want.ok {
			t.Errorf("ParseCommand(%q) = %q, %q, %v; want %q, %q, %v", in, verb, text, ok, want.verb, want.text, want.ok)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"/ralph fix x", "/ralph", "/ralph \xff\xfe", "/ralph fix " + strings.Repeat("é", 5000), "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		verb, text, ok := tracker.ParseCommand(in)
		switch {
		case !ok && (verb != "" || text != ""):
			t.Errorf("%q: no command, but %q, %q", in, verb, text)
		case ok && !strings.HasPrefix(in, "/"):
			if clean, _ := tracker.Clean(in); !strings.HasPrefix(clean, "/ralph") {
				t.Errorf("%q is a command", in)
			}
		}
		if strings.ContainsAny(string(verb), " \t\n") || len(verb) > 32 || len(text) > 4<<10 || !utf8.ValidString(string(verb)+text) {
			t.Errorf("%q: %q, %q", in, verb, text)
		}
	})
}
