package script

import (
	"slices"
	"strings"
	"testing"
)

// The files of a loop count once, however often its variable is used: a script may be arbitrarily large.
func TestLoopWithManyUses(t *testing.T) {
	t.Parallel()
	const many = 2000
	text := "for x in " + strings.Repeat("a.sh ", many) + "; do\n" + strings.Repeat("sh $x\n", many) + "done\n"
	words := scriptWords(text, true, []string{"sh"})
	if n := len(words); n > 4*many || !slices.Contains(words, "a.sh") {
		t.Errorf("%d words", n)
	}
}
