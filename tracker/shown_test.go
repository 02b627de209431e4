package tracker_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"alone":                            "<!-- HIDDEN -->",
		"in a line":                        "Fix it. <!-- HIDDEN --> Thanks.",
		"of several lines":                 "a\n<!--\nHIDDEN\n-->\nb",
		"without an end":                   "a\n<!-- HIDDEN\nmore",
		"twice":                            "<!-- HIDDEN --><!-- HIDDEN -->",
		"in another":                       "<!-- a <!-- HIDDEN -->",
		"after an empty one":               "<!--><!-- HIDDEN -->",
		"after what ends none":             "<!--!> --> <!-- ->HIDDEN -->",
		"split by a character of no width": "<!\u200b-- HIDDEN -->",
		"in what may be code":              "```\n<!-- HIDDEN -->\n```",
	} {
		if got, n := tracker.VisibleText(text); strings.Contains(got, "HIDDEN") || n < len("HIDDEN") {
			t.Errorf("%s: %q, %d", name, got, n)
		}
	}
	for text, want := range map[string]string{
		"a -- b --> c <! d":        "a -- b --> c <! d",
		"a\r\n<!-- ä -->\r\nb\r\n": "a\n<!-- … -->\nb\n",
		"one <!-- a --> two <!-- ": "one <!-- … --> two <!-- … -->",
		"<!--> a --> b":            "<!--> a --> b", // as HTML defines it
		"<!---> a --> b":           "<!---> a --> b",
		"<!----> a --> b":          "<!----> a --> b",
		"<!-- a --!> b --> c":      "<!-- … --> b --> c",
		"de&zwnj;l&#8203;ete&shy;": "de&…;l&…;ete&…;",
		"&#82&#8203;03;":           "&#82&…;03;",
		"<!&#8203;-- a -->":        "<!&…;-- a -->",
		"&amp;#8203; &lt;&nbsp;&x": "&amp;#8203; &lt;&nbsp;&x",
	} {
		if got, _ := tracker.VisibleText(text); got != want {
			t.Errorf("Shown(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzShown(f *testing.F) {
	for _, s := range []string{"<!-- a -->", "```\n<!--", "a `<!-- b -->`", "<!-->", "<!\u200b--\n<!--", "<!--->a--!>", "&#8203;&#xE0048&zwnj;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, _ := tracker.VisibleText(s)
		if again, n := tracker.VisibleText(got); again != got || n != 0 {
			t.Errorf("Shown(%q) = %q, then %q, %d", s, got, again, n)
		}
	})
}
