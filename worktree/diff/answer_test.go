package diff

import (
	"bufio"
	"strings"
	"testing"
)

// Git skips a commit that it cannot read. No reader takes that for a commit without changes.
func TestSkippedCommit(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("1", 40), strings.Repeat("2", 40)
	const path = ":000000 100644 0 1 A\x00file\x00"
	for name, c := range map[string]struct {
		answer string
		whole  bool
	}{
		"whole":            {first + "\x00" + path + second + "\x00" + path + endOfAnswer, true},
		"without changes":  {first + "\x00" + second + "\x00" + endOfAnswer, true},
		"no first":         {second + "\x00" + path + endOfAnswer, false},
		"no last":          {first + "\x00" + path + endOfAnswer, false},
		"none":             {endOfAnswer, false},
		"cut":              {first + "\x00" + path + second + "\x00" + path, false},
		"cut in the path":  {first + "\x00" + path + second + "\x00" + path[:24], false},
		"cut in the patch": {first + "\x00" + second + "\x00" + path + "\x00diff --git a/file b/file\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c0 := changes{commits: Range{Commits: []string{first, second}}, seen: map[string]bool{}, links: map[string]bool{}}
			if err := c0.parse(bufio.NewReader(strings.NewReader(c.answer))); (err == nil) != c.whole {
				t.Errorf("changes: %v", err)
			}
		})
	}
	for answer, whole := range map[string]bool{
		first + "\x00" + path + endOfAnswer: true, first + "\x00" + endOfAnswer: true, endOfAnswer: false,
		first + "\x00" + path: false, second + "\x00" + path + endOfAnswer: false, first + "\x00" + path + "x\n": false,
	} {
		if _, err := parseFiles(bufio.NewReader(strings.NewReader(answer)), first); (err == nil) != whole {
			t.Errorf("files of %q: %v", answer, err)
		}
	}
}
