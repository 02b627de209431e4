package tracker_test

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"

	"github.com/ralph-pool/ralph/tracker"
)

// parts are what texts are made of; each "H" and "U" becomes the start of a comment of its own, with an end and without.
var parts = []string{
	"H", "H", "H", "U", "U", "```", "```", "~~~", "`", "`", "`", "``", "`\n", "Say ", "Say `", "- Say `", "- ", "1. ", "> ", "\n", "\n", "\n", "\n\n",
	" ", " ", "  ", "    ", "\t", "a", "b", "x ", "html", "<div>", "</div>", "<pre>", "<b>", "<a title='", "'>", "<!--", "-->", "<!-- x -->", "<?", "<!A",
	"[", "]", "](b \"", "\")", "[^1]: ", "[^1]", "|", "---", "===", "* * *", "# ", "*", "**", "_", "~", ":", "\\", "$", "!", "(", ")", "https://a.b/", "www.a.b/", "x@y.z",
}

// made makes a text of so many of the parts as there are bytes, and says how many comments are in it.
func made(choice []byte) (text string, comments int) {
	var b strings.Builder
	for _, c := range choice[:min(len(choice), 24)] {
		part := parts[int(c)%len(parts)]
		if part == "H" || part == "U" {
			comments++
			part = fmt.Sprintf("<!-- H%d.%s", comments, map[string]string{"H": " -->"}[part])
		}
		b.WriteString(part)
	}
	return b.String(), comments
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	htmlTag     = regexp.MustCompile(`(?s)<[a-zA-Z/](?:[^>"']|"[^"]*"|'[^']*')*>`)
)

// What is kept of comments is visible on a page that a renderer of Markdown has made of the text.
func FuzzShownIsVisible(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		choice := make([]byte, 3+random.IntN(18))
		for i := range choice {
			choice[i] = byte(random.IntN(256))
		}
		f.Add(choice)
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(renderer.WithUnsafe()))
	f.Fuzz(func(t *testing.T, choice []byte) {
		text, comments := made(choice)
		got, _ := tracker.Shown(text)
		var page bytes.Buffer
		if err := markdown.Convert([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		visible := html.UnescapeString(htmlTag.ReplaceAllString(htmlComment.ReplaceAllString(page.String(), ""), ""))
		for n := range comments {
			start := fmt.Sprintf("<!-- H%d.", n+1)
			if strings.Contains(got, start) && !strings.Contains(visible, start) {
				t.Errorf("%q\nis kept as %q\non the page: %q", text, got, page.String())
			}
		}
	})
}
