package tracker

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Done.\n", "```text\nDone.\n```"},
		{"mentions", "@ada @org/team (@x) @[app] a@b.example pkg@1.2", "```text\n@ ada @ org/team (@ x) @ [app] a@b.example pkg@1.2\n```"},
		{"bot command", "@dependabot merge\n/approve\n  /close now\n/usr/lib/x: no", "```text\n@ dependabot merge\n\\/approve\n  \\/close now\n/usr/lib/x: no\n```"},
		{"closing keywords", "Fixes #12, closes: o/r#7, resolves GH-3, closes !4", "```text\nFixes # 12, closes: o/r# 7, resolves GH- 3, closes ! 4\n```"},
		{"closing by address", "fixes https://forge.example/o/r/issues/5", "```text\nfixes https://forge.example/o/r/issues/ 5\n```"},
		{"html and links", "<img src=x> <script> [a](javascript:x) ![p](http://x/p.png)", "```text\n<img src=x> <script> [a](javascript:x) ![p](http://x/p.png)\n```"},
		{"markers", "<!-- ralph:report x -->", "```text\n<! -- ralph:report x -->\n```"},
		{"fence", "```\nout\n```", "````text\n```\nout\n```\n````"},
		{"long fence", strings.Repeat("`", 20) + "\nout", "````````````````text\n" + strings.Repeat("`", 15) + " `````\nout\n````````````````"},
		{"tildes", "~~~\nout", "```text\n~~~\nout\n```"},
		{"invisible", "@\u200bada fixes\u00a0#\u20601\u202e", "```text\n@ ada fixes\u00a0# 1\n```"},
		{"heading", "#close and # title", "```text\n# close and # title\n```"},
		{"empty", " \n\u200b\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Quote(c.in, 1000); got != c.want {
				t.Errorf("Quote(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestQuoteIsBounded(t *testing.T) {
	t.Parallel()
	got := Quote(strings.Repeat("☕", 100), 100)
	if len(got) > 100 || !utf8.ValidString(got) || !strings.HasSuffix(got, " more bytes)\n```") {
		t.Errorf("Quote = %q, %d bytes", got, len(got))
	}
	if got := Quote("short", -1); got != "```text\nshort\n```" {
		t.Errorf("Quote with no limit = %q", got)
	}
}

func TestQuoteLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Add a test":              "`Add a test`",
		"fix: a\n\n/close `x` #1": "``fix: a \\/close `x` # 1``",
		"`":                       "`` ` ``",
		"":                        "",
		strings.Repeat("é", 100):  "`" + strings.Repeat("é", 28) + "…`",
	} {
		if got := QuoteLine(in, 64); got != want {
			t.Errorf("QuoteLine(%q) = %q, want %q", in, got, want)
		}
	}
}

// activeText matches active text: mentions, references, HTML comments and quick actions that a reader of the raw text would act on.
var activeText = regexp.MustCompile(`(?im)(^|[^a-z0-9])@[a-z0-9_]|#[\pL\pN_]|\bgh-\d|/issues/\d|/merge_requests/\d|<!--|^[ \t]*/[a-z][\w-]*([ \t]|$)`)

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"```\n@a@b #1", "/close\n/x", "<!--", "fixes GH-1 /issues/2", strings.Repeat("`", 40), "\xff☕\u202e"} {
		f.Add(s, 80)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit %= 5000
		got := Quote(s, limit)
		if got == "" {
			return
		}
		if len(got) > max(limit, minQuote) || !utf8.ValidString(got) {
			t.Fatalf("Quote(%q, %d) has %d bytes", s, limit, len(got))
		}
		lines := strings.Split(got, "\n")
		fence := strings.TrimSuffix(lines[0], "text")
		if strings.Trim(fence, "`") != "" || len(fence) < 3 || lines[len(lines)-1] != fence {
			t.Fatalf("Quote(%q) = %q has no fence", s, got)
		}
		body := strings.Join(lines[1:len(lines)-1], "\n")
		if strings.Contains(body, fence) {
			t.Fatalf("Quote(%q) = %q can be left", s, got)
		}
		if m := activeText.FindString(body); m != "" {
			t.Fatalf("Quote(%q) = %q lets %q act", s, got, m)
		}
		line := QuoteLine(s, limit)
		if len(line) > max(limit, minQuote) || strings.Contains(line, "\n") || activeText.MatchString(strings.Trim(line, "`")) {
			t.Fatalf("QuoteLine(%q) = %q", s, line)
		}
	})
}

// A name stays unchanged inside its code span.
func TestCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ralph/fix-1": "`ralph/fix-1`", "a`b": "``a`b``", "`a": "`` `a ``", "a#1@b": "`a#1@b`", "a``": "``` a`` ```",
	} {
		if got := Code(in); got != want {
			t.Errorf("Code(%q) = %q, want %q", in, got, want)
		}
	}
}
