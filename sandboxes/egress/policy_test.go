package egress

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com":            "example.com",
		"*.Example.com:443":      "*.Example.com:443",
		"example.com:80,8080":    "example.com:80,8080",
		"[2606::1]:22":           "[2606::1]:22",
		"2606::1":                "2606::1",
		"10.0.0.1:5000":          "10.0.0.1:5000",
		"example.com:":           "!port \"\" is not a number",
		"example.com:x":          "!port \"x\" is not a number",
		"example.com:0":          "!port 0 is not between 1 and 65535",
		"a:b:c":                  "!use HOST, HOST:PORT or [IPv6]:PORT",
		"https://example.com":    "!",
		"":                       "!a host has 1 to 253 characters",
		"*":                      "!a star stands only",
		"*.co":                   "!name the hosts",
		"*.co.":                  "!name the hosts",
		"e\u0445ample.com":       "!write other scripts as xn--",
		"127.1":                  "!neither a name nor an address",
		strings.Repeat("a", 300): "!1 to 253 characters",
	} {
		r, err := ParseRule(text)
		part, wantErr := strings.CutPrefix(want, "!")
		switch {
		case wantErr && (err == nil || !strings.Contains(err.Error(), part)):
			t.Errorf("%q: error %v, want %q in it", text, err, part)
		case !wantErr && (err != nil || r.String() != want):
			t.Errorf("%q: %q, %v", text, r, err)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com:443", "[::1]:80", "127.0.0.1:1", "a..b:1", "*.x:443", "\x00:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := ParseRule(s); err == nil && s == "" {
			t.Error("an empty rule")
		}
		host, port, err := splitTarget(s)
		if err != nil {
			return
		}
		if port < 1 || port > 65535 || strings.ContainsAny(host, " \r\n\x00/@%*") {
			t.Errorf("%q gives %q, %d", s, host, port)
		}
		if again, err := wire.CanonicalHost(host); err != nil || again != host {
			t.Errorf("%q is not canonical: %q, %v", host, again, err)
		}
	})
}
