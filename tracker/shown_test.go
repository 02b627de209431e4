package tracker_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

func TestShown(t *testing.T) {
	t.Parallel()
	const hidden = "<!-- HIDDEN -->"
	for name, text := range map[string]string{
		"alone":                             hidden,
		"in a line":                         "Fix it. " + hidden + " Thanks.",
		"of several lines":                  "a\n<!--\nHIDDEN\n-->\nb",
		"without an end":                    "a\n<!-- HIDDEN\nmore",
		"twice":                             hidden + hidden,
		"in another":                        "<!-- a <!-- HIDDEN -->",
		"after an empty one":                "<!--> HIDDEN -->",
		"split by a character of no width":  "<!\u200b-- HIDDEN -->",
		"below a fence of HTML":             "<div>\n```\n" + hidden + "\n```\n</div>",
		"below a fence that is text":        "<pre>\n\n```\n" + hidden + "\n```\n</pre>",
		"below a fence that is none":        "```a`b\n" + hidden + "\n```",
		"below an indented row of ticks":    "x\n\n    ```\n" + hidden,
		"below the end of a fence":          "```\ncode\n   ```` \n" + hidden,
		"below a row that ends no fence":    "```\n    ```\n```\n\n" + hidden + "\n\n```\n```",
		"between ticks that do not match":   "Say ` " + hidden + " ``",
		"between ticks that do not count":   "Say \\` " + hidden + " \\`",
		"between ticks of two tags":         "Say <a title='`'> " + hidden + " <a title='`'>",
		"between ticks in an HTML block":    "<div>\nSay `" + hidden + "`\n</div>",
		"between ticks of two table cells":  "a ` | " + hidden + " ` |\n---|---",
		"after an end within a fence":       "```\n" + "-->\n```\n" + hidden,
		"below a fence in another comment":  "<!--\n\n```\n-->\n" + hidden + "\n```",
		"between ticks of two items":        "- a ` b\n- " + hidden + " `",
		"between ticks of two lines":        "Say ` b\n` " + hidden + " `",
		"in an item below HTML":             "<pre>\n- Say `" + hidden + "`\n</pre>",
		"in a fence of an item":             "- ``` `" + hidden + "`\n  ```",
		"in a quote of an item":             "- > ` a\n` " + hidden + " `",
		"between ticks of two numbers":      "Say ` b\n2. ` " + hidden + " `",
		"below a fence after another's end": "<!-- a\n-->\n\n```\n" + hidden + "\n```",
		"in an item in an HTML block":       "<div>\n- Say `" + hidden + "`\n</div>",
		"in a fence in an HTML block":       "<div>\n\n<b>\n```\n" + hidden + "\n```",
		"below a fence within a paragraph":  "Steps:\n```\n\n```\n" + hidden + "\n```",
		"below a fence of a quote":          "a\n> ```\n\n```\nb\n```\n" + hidden + "\n\n```\n```",
		"below a fence with three spaces":   "   ```\n\n```\n" + hidden + "\n```",
		"below an end that shows no more":   "```\n```\u200b\n\n```\n" + hidden + "\n```",
		"below a line end that is none":     "x\u2028\u2028```\n" + hidden + "\n```",
		"in a title of a link":              "Say [a](b \" ` \") " + hidden + " `",
		"after the name of a link":          "Say [a][ `] " + hidden + " `\n\n[ `]: /b",
		"after an address":                  "See https://a.b/` " + hidden + " `",
		"in a formula":                      "Say $a ` % " + hidden + " ` b$",
		"behind a fence":                    "```html " + hidden + "\n```",
		"in an attribute":                   "<a title='\n\nSay `" + hidden + "`\n\n'>",
		"in an attribute of a quote":        "> <a title=\n\n```\n" + hidden + "\n```\n\n>",
		"in an attribute of a strange name": "<a x'=\" y' z>\n\nSay `" + hidden + "`\n\n\">",
		"in an attribute of a second tag":   "<<a title='\n\nSay `" + hidden + "`\n\n'>",
		"at the end of an HTML block":       "<div>\nx <!-- HIDDEN",
		"in an attribute in text":           "Say <a title='<!-- HIDDEN'>",
		"in a declaration in text":          "Say <!A\nb <!-- HIDDEN >",
		"in a title in text":                "Say [a](b\nc \"<!-- HIDDEN\")",
		"in a later line without an end":    "x\n<!-- HIDDEN",
		"in an item without an end":         "- <!-- HIDDEN",
		"in a paragraph of two lines":       "x <!-- HIDDEN\nb -->",
		"in a title":                        "<title>\n\nSay `" + hidden + "`\n\n</title>",
		"in a diagram":                      "```mermaid\n" + hidden + "\n```",
		"in a diagram with settings":        "~~~ Mermaid {a}\n" + hidden + "\n~~~",
		"below front matter":                "---\n\n~~~\n---\n" + hidden + "\n~~~",
		"below front matter with a coding":  "# coding: a\n---\n\n~~~\n---\n" + hidden + "\n~~~",
		"below a quote of GitLab's":         ">>>\n\n```\n>>>\n" + hidden + "\n```",
	} {
		if got, n := tracker.Shown(text); strings.Contains(got, "HIDDEN") || n < len("HIDDEN") {
			t.Errorf("%s: %q, %d", name, got, n)
		}
	}
	for name, text := range map[string]string{
		"no comment":          "a -- b --> c <! d",
		"a fence":             "Change this:\n\n```html\n<!-- a -->\n```\n\nto that:\n\n~~~~\n<!-- b -->\n~~~\n~~~~",
		"a fence at first":    "```\n<!-- a -->",
		"ticks":               "Remove `<!-- a -->` and ``<!-- ` -->``.",
		"a list":              "Do this:\n- Remove `<!-- a -->`.\n- [ ] `<!-- b -->` has to go\n* and `<!-- c -->`",
		"ticks at once":       "`<!-- a -->` has to go",
		"ticks, not at first": "One.\n\nRemove `<!-- a -->`.",
		"ticks in signs":      "Remove (`<!-- a -->`) and **`<!-- b -->`**.",
		"a fence below text":  "Steps:\n```html\n<!-- a -->\n```\n- so:\n```\n<!-- b -->\n```",
		"a start in text":     "It fails.\nIt ends at `<!--` for ever.\n\nSteps: <!-- x\n\n- and <!-- y",
		"a fence in details":  "<details open>\n<summary a=\"'\">x < y</summary>\n\n```html\n<!-- a -->\n```\n</details>",
	} {
		if got, n := tracker.Shown(text); got != text || n != 0 {
			t.Errorf("%s: %q, %d", name, got, n)
		}
	}
	if got, n := tracker.Shown("a\r\n<!-- ä -->\r\n```\r\n<!-- b -->\r\n```\n"); got != "a\n<!-- … -->\n```\n<!-- b -->\n```\n" || n != 3 {
		t.Errorf("%q, %d", got, n)
	}
}

func FuzzShown(f *testing.F) {
	for _, s := range []string{"<!-- a -->", "```\n<!--", "a `<!-- b -->`", "<!-->", "~~~\n~~~\n<!--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, _ := tracker.Shown(s)
		if again, n := tracker.Shown(got); again != got || n != 0 {
			t.Errorf("Shown(%q) = %q, then %q, %d", s, got, again, n)
		}
	})
}
