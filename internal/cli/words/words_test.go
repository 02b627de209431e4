package words

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want []string
		err  string
	}{
		{"", nil, ""},
		{"  a\tb\n c ", []string{"a", "b", "c"}, ""},
		{`a 'b c' "d e"`, []string{"a", "b c", "d e"}, ""},
		{`a''b ''`, []string{"ab", ""}, ""},
		{`--x="1 2"`, []string{"--x=1 2"}, ""},
		{`a\ b \'`, []string{"a b", "'"}, ""},
		{`"a\"b\\c\d"`, []string{`a"b\c\d`}, ""},
		{`'a\b'`, []string{`a\b`}, ""},
		{`$HOME *.go ~`, []string{"$HOME", "*.go", "~"}, ""},
		{`sh -c 'a | b > c'`, []string{"sh", "-c", "a | b > c"}, ""},
		{"über 'ß €'", []string{"über", "ß €"}, ""},
		{`a 'b`, nil, `the ' at character 3 is never closed`},
		{`a "b\"`, nil, `the " at character 3 is never closed`},
		{`a \`, nil, `ends with a backslash`},
		{`a && b`, nil, `'&' needs a shell; quote it, or write sh -c '…'`},
		{"a `b`", nil, "'`' needs a shell; quote it, or write sh -c '…'"},
	} {
		got, err := Split(c.line)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: error %v, want %q", c.line, err, c.err)
		}
	}
}

// FuzzSplit checks that quoted words are returned unchanged.
func FuzzSplit(f *testing.F) {
	f.Add("a", "b c")
	f.Add("'", `"\`)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		got, err := Split(quote(a) + " \t" + quote(b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{a, b}, got); diff != "" {
			t.Error(diff)
		}
		_, _ = Split(a)
	})
}
