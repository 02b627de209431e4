package finish

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"+plain\ttext ü 能\n":                      "+plain\ttext ü 能\n",
		"\x1b[32m+\x1b[m\x1b[1;38;5;8mx\x1b[0m\n": "\x1b[32m+\x1b[m\x1b[1;38;5;8mx\x1b[0m\n",
		"+\x1b[8mhidden\x1b[m\n":                  "+^[[8mhidden\x1b[m\n",
		"+\x1b[1;8mhidden\n":                      "+^[[1;8mhidden\n",
		"+\x1b[2J\x1b]0;title\a\n":                "+^[[2J^[]0;title^G\n",
		"+\u009b2J \x9b2J\n":                      "+<U+009B>2J <9B>2J\n",
		"+over\rwritten\r\n":                      "+over^Mwritten\r\n",
		"+\u202eturned\n":                         "+<U+202E>turned\n",
		"no end":                                  "no end",
	} {
		var out strings.Builder
		if err := visible(&out, strings.NewReader(in)); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v; want %q", in, out.String(), err, want)
		}
	}
}

func TestFilteredPager(t *testing.T) {
	t.Parallel()
	const filter = "'/a b/ralph' in-sandbox visible -"
	for _, tt := range [][3]string{
		{"", "less", filter + " | less"}, {"true", "less -R", filter + " | less -R"}, {"delta", "less", filter + " | delta"},
		{"false", "less", filter}, {"", "cat", filter}, {"", "", filter},
	} {
		if got := filtered("/a b/ralph", tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q, %q: %s", tt[0], tt[1], got)
		}
	}
}
