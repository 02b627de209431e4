package suite_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

func TestIsBinary(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "text\n": false, "a\x00": true, strings.Repeat("x", 7999) + "\x00": true, strings.Repeat("x", 8000) + "\x00": false,
	} {
		if got := suite.IsBinary([]byte(text)); got != want {
			t.Errorf("%d bytes: %t", len(text), got)
		}
	}
}

// What git takes for data hides text if it was text before, is run, or is mostly text.
func TestHides(t *testing.T) {
	t.Parallel()
	const image = "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x9c\xfe\x01\x02\x90\x81\xff\xc3"
	for name, c := range map[string]struct {
		file     string
		program  bool
		old, now string
		want     bool
	}{
		"text":                    {"a.sql", true, "", "select 1\n", false},
		"an image":                {"a.png", false, "", image, false},
		"another image":           {"a.png", false, image + "x", image, false},
		"an image for text":       {"a.png", false, "version https://git-lfs\n", image, true},
		"a new executable":        {"tool", true, "", image, true},
		"another executable":      {"tool", true, image + "x", image, true},
		"a new script":            {"bin/tool", false, "", "#!/bin/sh\n\x00" + image, true},
		"text before":             {"main.tf", false, "a = 1\n", "a = 2\n#\x00\n", true},
		"new text":                {"a.vue", false, "", "<script>evil()</script>\n\x00\n", true},
		"new text with noise":     {"a.vue", false, "", "<script>evil()</script>\x00\x00\x00\x00\x00\x01\n", true},
		"source":                  {"a.js", false, "", image, true},
		"source that was like it": {"a.js", false, image + "x", image, false},
		"UTF-16":                  {"deploy.ps1", false, "", "\xff\xfee\x00v\x00i\x00l\x00", true},
		"UTF-16, big endian":      {"deploy.ps1", false, "", "\xfe\xff\x00e\x00v", true},
		"UTF-16 as before":        {"deploy.ps1", false, "\xff\xfeg\x00", "\xff\xfee\x00", true},
		"UTF-16 without mark":     {"deploy.ps1", false, "", "e\x00v\x00i\x00l\x00", true},
		"UTF-16 without zero":     {"deploy.ps1", false, "", "\xff\xfe\x4e\x01\x4e\x02", true},
		"zeros":                   {"disk", false, "", strings.Repeat("\x00", 100), false},
	} {
		if got := suite.Hides(c.file, c.program, []byte(c.old), []byte(c.now)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
