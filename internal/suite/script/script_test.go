package script

import (
	"slices"
	"strings"
	"testing"
)

// The files of a loop count once, however often its variable stands for them: a script may be as big as its writer likes.
func TestLoopWithManyUses(t *testing.T) {
	t.Parallel()
	const many = 2000
	text := "for x in " + strings.Repeat("a.sh ", many) + "; do\n" + strings.Repeat("sh $x\n", many) + "done\n"
	words := runs(text, []string{"sh"})
	if n := len(words); n > 4*many || !slices.Contains(words, "a.sh") {
		t.Errorf("%d words", n)
	}
}
