package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/web/dashboard"
)

// told formats a diff briefly.
func told(files []dashboard.FileDiff) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "[%s<%s %s +%d-%d]", f.Path, f.Old, f.Note, f.Added, f.Removed)
		for _, l := range f.Lines {
			fmt.Fprintf(&b, " %s %d/%d %q", l.Kind, l.Old, l.New, l.Text)
		}
	}
	return b.String()
}

func TestDiffIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, patch, want string }{
		{"nothing", "", ""},
		{"garbage", "hello\n+x\n@@ -1 +1 @@\n", ""},
		{"lines", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ func f\n a\n-b\n+c\n+d\n", `[x<  +2-1] hunk 0/0 "@@ -1,2 +1,3 @@ func f" same 1/1 "a" del 2/0 "b" add 0/2 "c" add 0/3 "d"`},
		{"two files", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n\\ No newline at end of file\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+z\n", `[x<  +1-1] hunk 0/0 "@@ -1 +1 @@" del 1/0 "b" add 0/1 "c"[y< new file mode 100644 +1-0] hunk 0/0 "@@ -0,0 +1 @@" add 0/1 "z"`},
		{"lines like headers", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n-diff --git a/z b/z\n+++ b/y\n+@@ -9 +9 @@\n", `[x<  +2-2] hunk 0/0 "@@ -1,2 +1,2 @@" del 1/0 "-- a/y" del 2/0 "diff --git a/z b/z" add 0/1 "++ b/y" add 0/2 "@@ -9 +9 @@"`},
		{"rename", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "[y<x  +0-0]"},
		{"odd names", "diff --git \"a/\\303\\274 \\\"q\\\"\" \"b/\\303\\274 \\\"q\\\"\"\n--- \"a/\\303\\274 \\\"q\\\"\"\n+++ \"b/\\303\\274 \\\"q\\\"\"\n@@ -1 +1 @@\n-a\n+b\n", `[ü "q"<  +1-1] hunk 0/0 "@@ -1 +1 @@" del 1/0 "a" add 0/1 "b"`},
		{"gone", "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", `[x< deleted file mode 100644 +0-1] hunk 0/0 "@@ -1 +0,0 @@" del 1/0 "a"`},
		{"binary", "diff --git a/x b/x\nBinary files a/x and b/x differ\n", "[x< Binary files a/x and b/x differ +0-0]"},
		{"text that deceives", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+if \u202e {\u200b}\x1b[2K\tok\r\n", `[x<  +1-1] hunk 0/0 "@@ -1 +1 @@" del 1/0 "a" add 0/1 "if <U+202E> {<U+200B>}<U+001B>[2K\tok"`},
		{"numbers of lines", "2\t0\tx\n-\t-\t\"\\303\\274\"\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+3\t4\ty\ndiff --git \"a/\\303\\274\" \"b/\\303\\274\"\nBinary files differ\n", `[x<  +2-0] hunk 0/0 "@@ -0,0 +1,2 @@" add 0/1 "a" add 0/2 "3\t4\ty"[ü< Binary files differ +0-0]`},
		{"not text", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\xff\n+\x00\n", "[x<  +1-1] hunk 0/0 \"@@ -1 +1 @@\" del 1/0 \"\ufffd\" add 0/1 \"<U+0000>\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, _, cut := dashboard.Diff([]byte(c.patch))
			if got := told(files); got != c.want || cut {
				t.Errorf("got  %s\nwant %s\ncut %t", got, c.want, cut)
			}
		})
	}
	long := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,9000 @@\n" + strings.Repeat("+"+strings.Repeat("w", 5000)+"\n", 9000)
	files, _, cut := dashboard.Diff([]byte(long))
	if !cut || len(files[0].Lines) > 4001 || len(files[0].Lines[1].Text) > 1010 {
		t.Errorf("a long one: cut %t, %d lines", cut, len(files[0].Lines))
	}
	long = "9000\t0\tx\n" + strings.Repeat("1\t0\t\u202eevil.py\n", 1005) + "\n" + long
	files, more, cut := dashboard.Diff([]byte(long))
	if last := files[len(files)-1]; !cut || len(files) != 1001 || more != 5 || files[0].Added != 9000 || last.Name() != "<U+202E>evil.py" || last.Note != "not shown" {
		t.Errorf("what is not shown: cut %t, %d files, %d more, %+v", cut, len(files), more, last)
	}
}

// A file that becomes a link is one entry in the numstat and two in the patch: the files after it keep their own numbers.
func TestDiffOfALink(t *testing.T) {
	t.Parallel()
	const patch = "1\t1\ta\n3\t1\tb\n\ndiff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n" +
		"diff --git a/a b/a\nnew file mode 120000\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n" +
		"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1,3 @@\n-1\n+x\n+y\n+z\n"
	files, more, cut := dashboard.Diff([]byte(patch))
	if len(files) != 3 || files[0].Added+files[1].Removed != 0 || files[2].Path != "b" || files[2].Added != 3 || files[2].Removed != 1 || more != 0 || cut {
		t.Errorf("%+v, %d, %t", files, more, cut)
	}
}

// If the patch is cut, the files in the rest are still named.
func TestDiffThatIsCut(t *testing.T) {
	t.Parallel()
	files, more, cut := dashboard.Beginning([]byte("1\t0\ta\n1\t0\tb\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+xxxxx"))
	if len(files) != 2 || files[1].Path != "b" || files[1].Note != "not shown" || more != 1 || !cut {
		t.Errorf("%+v, %d, %t", files, more, cut)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		files, _, _ := dashboard.Diff(patch)
		ids := map[string]bool{}
		for _, f := range files {
			for _, l := range f.Lines {
				if l.Kind != "hunk" && l.Kind != "same" && l.Number() < 0 {
					t.Errorf("%+v", l)
				}
				ids[l.ID] = true
			}
		}
	})
}
