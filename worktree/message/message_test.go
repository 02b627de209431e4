package message

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRewrite(t *testing.T) {
	t.Parallel()
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 1111111111111111111111111111111111111111\n" +
		"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	const signed = head + "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\nextra kept\n"
	renamed := map[string]string{strings.Repeat("1", 40): strings.Repeat("2", 40)}
	moved := strings.Replace(head, strings.Repeat("1", 40), strings.Repeat("2", 40), 1)
	for _, c := range []struct {
		in, want string
		renamed  map[string]string
	}{
		{in: head + "\nm\n", want: head + "\nm\n"},
		{in: signed + "\nm\n", want: signed + "\nm\n"},
		{in: signed + "\nfixes #1\n", want: head + "extra kept\n" + "\nfixes # 1\n"},
		{in: signed + "\nm\n", want: moved + "extra kept\n" + "\nm\n", renamed: renamed},
		{in: head + "encoding ISO-8859-1\n\nf\xfcr #1", want: head + "encoding ISO-8859-1\n\nf\xfcr # 1"},
		{in: head + "encoding UTF-7\n\nfixes +ACM-1\n", want: head + "\nfixes +ACM- 1\n"},
		{in: "no message", want: "no message"},
	} {
		if got := (Edit{Neutralize: true, Renamed: c.renamed}).Apply(c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

// A very long message takes no more time than one of normal length.
func TestRewriteShortens(t *testing.T) {
	t.Parallel()
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"
	got := (Edit{Neutralize: true}).Apply(head + "Closes #1\n\n" + strings.Repeat("äö", 4<<20))
	if len(got) > messageLimit+1000 || !strings.HasPrefix(got, head+"Closes # 1\n\nä") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %.200q", len(got), got)
	}
	if again := (Edit{Neutralize: true}).Apply(got); again != got {
		t.Error("the second time it is another commit")
	}
	if whole := head + strings.Repeat("x", messageLimit); (Edit{Neutralize: true}).Apply(whole) != whole {
		t.Error("a message that is short enough was changed")
	}
}

func TestRewriteEncoded(t *testing.T) {
	t.Parallel()
	const top = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	const names = "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
	for name, c := range map[string]struct{ in, want string }{
		"hidden in two bytes":     {top + names + "encoding UTF-16LE\n\nF\x00i\x00x\x00e\x00s\x00 \x00#\x001\x00", top + names + "\nFixes # 1"},
		"unknown":                 {top + names + "encoding x-none\n\n\xff\xfe fixes #1\xfd\n", top + names + "\n\xff\xfe fixes # 1\xfd\n"},
		"not what it says":        {top + names + "encoding SHIFT_JIS\n\n\xe8\xa1 fixes #1\xff\xff\n", top + names + "\n\xe8\xa1 fixes # 1\xff\xff\n"},
		"said twice":              {top + names + "encoding ISO-8859-1\nencoding UTF-7\n\n\xfc +ACM-1\n", top + names + "\n\xfc +ACM-1\n"},
		"empty":                   {top + names + "encoding \n\nm\n", top + names + "\nm\n"},
		"a name of another":       {top + strings.ReplaceAll(names, "A <", "\x8eR <") + "encoding SJIS\n\nm\n", top + strings.ReplaceAll(names, "A <", "山 <") + "\nm\n"},
		"a name that is none":     {top + strings.ReplaceAll(names, "A <", "\x81 <") + "encoding SJIS\n\nm\n", top + strings.ReplaceAll(names, "A <", " <") + "\nm\n"},
		"a name that is a header": {top + strings.ReplaceAll(names, "A <", "a\x00\x0a\x00 <") + "encoding UTF-16LE\n\nm\x00\n", ""},
		"as it is":                {top + names + "encoding latin1\n\n\xfc\n", top + names + "encoding latin1\n\n\xfc\n"},
	} {
		if c.want == "" { // whatever the result, it must not have more lines
			if got := (Edit{Neutralize: true}).Apply(c.in); strings.Count(got, "\n") > strings.Count(c.in, "\n") {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		got := (Edit{Neutralize: true}).Apply(c.in)
		if got != c.want {
			t.Errorf("%s: %q\n got %q\nwant %q", name, c.in, got, c.want)
		}
		if again := (Edit{Neutralize: true}).Apply(got); again != got {
			t.Errorf("%s: a second time %q", name, again)
		}
	}
}

// The rewritten commit has the same header fields, and rewriting it again changes nothing.
func FuzzRewrite(f *testing.F) {
	for _, encoding := range []string{"SHIFT_JIS", "UTF-16LE", "ISO-2022-JP", "hz-gb-2312", "UTF-7", "latin1", ""} {
		f.Add(encoding, "A", "m\x1b$B fixes #1")
	}
	f.Fuzz(func(t *testing.T, encoding, name, message string) {
		if strings.ContainsAny(encoding+name, "\n\x00") {
			return
		}
		object := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor " + name + " <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\nencoding " +
			encoding + "\n\n" + message
		got := (Edit{Neutralize: true}).Apply(object)
		if again := (Edit{Neutralize: true}).Apply(got); again != got {
			t.Fatalf("%q, a second time %q", got, again)
		}
		header, _, _ := strings.Cut(got, "\n\n")
		lines := strings.Split(header, "\n")
		if len(lines) < 3 || len(lines) > 4 || !strings.HasPrefix(lines[1], "author ") || lines[2] != "committer C <c@d> 1 +0000" ||
			!strings.HasSuffix(lines[1], " <a@b> 1 +0000") {
			t.Fatalf("header %q of %q", header, object)
		}
	})
}
