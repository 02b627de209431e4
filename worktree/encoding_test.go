package worktree

import (
	"strings"
	"testing"
)

// encoded makes a commit as an agent would whose git is set to an encoding.
func (f *fixture) encoded(dir, encoding, author, message string) string {
	f.Helper()
	f.write(dir, "message", message)
	return f.sh(dir, "sh", "-c", `export GIT_AUTHOR_NAME="$(printf %s '`+author+`' | iconv -t `+encoding+`)"
iconv -t `+encoding+` message > message.coded && rm message && mv message.coded ../message.coded &&
git -c i18n.commitEncoding=`+encoding+` commit -q --allow-empty -F ../message.coded && rm ../message.coded && git rev-parse HEAD`)
}

// A message in another encoding stays what it says, and its author's name does, in UTF-8 where git would have to convert it.
func TestMessagesInOtherEncodings(t *testing.T) {
	t.Parallel()
	for encoding, text := range map[string]struct{ author, message string }{
		"SHIFT_JIS":   {"山田", "表示を直す 能力"}, // their second bytes are backslashes
		"EUC-JP":      {"山田", "表示を直す"},
		"ISO-2022-JP": {"Yamada", "表示を直す"},
		"GB18030":     {"张三", "修复显示"},
		"BIG5":        {"張三", "功能"},
		"ISO-8859-1":  {"Jürgen", "Für Übungen"},
		"KOI8-R":      {"Иван", "Исправить"},
		"CP866":       {"Иван", "Исправить"},
		"CP1252":      {"Jürgen", "Für Übungen"},
	} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tree := f.add("42", "r1")
			f.encoded(tree.Dir(), encoding, text.author, text.message+"\n\n"+text.message+" Fixes #1\n")
			f.encoded(tree.Dir(), encoding, text.author, text.message+"\n")
			got := f.handBack(tree)
			want := text.author + "|" + text.message + "\n\n" + text.message + " Fixes # 1\n"
			if s := f.git("log", "-1", "--format=%an|%B", got.Tip+"^"); s != want {
				t.Errorf("%q, want %q", s, want)
			}
			if s := f.git("log", "-1", "--format=%an|%B", got.Tip); s != text.author+"|"+text.message+"\n" {
				t.Errorf("where nothing acts: %q", s)
			}
			if got.Commits[1].Subject != text.message {
				t.Errorf("subject %q", got.Commits[1].Subject)
			}
			f.remove(tree)
		})
	}
}

func TestRewordEncoded(t *testing.T) {
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
		"a name that is none":     {top + strings.ReplaceAll(names, "A <", "\x81 <") + "encoding SJIS\n\nm\n", top + strings.ReplaceAll(names, "A <", "\x81 <") + "\nm\n"},
		"a name that is a header": {top + strings.ReplaceAll(names, "A <", "a\x00\x0a\x00 <") + "encoding UTF-16LE\n\nm\x00\n", ""},
		"as it is":                {top + names + "encoding latin1\n\n\xfc\n", top + names + "encoding latin1\n\n\xfc\n"},
	} {
		if c.want == "" { // whatever it is, it has no more lines
			if got := rewordCommit(c.in, nil); strings.Count(got, "\n") > strings.Count(c.in, "\n") {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		got := rewordCommit(c.in, nil)
		if got != c.want {
			t.Errorf("%s: %q\n got %q\nwant %q", name, c.in, got, c.want)
		}
		if again := rewordCommit(got, nil); again != got {
			t.Errorf("%s: a second time %q", name, again)
		}
	}
}

// FuzzRewordCommit: whatever a commit is, it has the same header fields afterwards, and a second look changes nothing.
func FuzzRewordCommit(f *testing.F) {
	for _, encoding := range []string{"SHIFT_JIS", "UTF-16LE", "ISO-2022-JP", "hz-gb-2312", "UTF-7", "latin1", ""} {
		f.Add(encoding, "A", "m\x1b$B fixes #1")
	}
	f.Fuzz(func(t *testing.T, encoding, name, message string) {
		if strings.ContainsAny(encoding+name, "\n\x00") {
			return
		}
		object := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor " + name + " <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\nencoding " +
			encoding + "\n\n" + message
		got := rewordCommit(object, nil)
		if again := rewordCommit(got, nil); again != got {
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
