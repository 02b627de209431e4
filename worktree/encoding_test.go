package worktree

import (
	"testing"
)

// encoded makes a commit as an agent does whose git is set to an encoding.
func (f *fixture) encoded(dir, encoding, author, message string) string {
	f.Helper()
	f.write(dir, "message", message)
	return f.sh(dir, "sh", "-c", `export GIT_AUTHOR_NAME="$(printf %s '`+author+`' | iconv -t `+encoding+`)"
iconv -t `+encoding+` message > message.coded && rm message && mv message.coded ../message.coded &&
git -c i18n.commitEncoding=`+encoding+` commit -q --allow-empty -F ../message.coded && rm ../message.coded && git rev-parse HEAD`)
}

// A message in another encoding keeps its text, and so does the author's name. Both are in UTF-8 if git would have to
// convert them.
func TestMessagesInOtherEncodings(t *testing.T) {
	t.Parallel()
	for encoding, text := range map[string]struct{ author, message string }{
		"SHIFT_JIS":   {"山田", "表示を直す 能力"}, // the second bytes of some characters are backslashes
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
			got := f.reworded(tree)
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
