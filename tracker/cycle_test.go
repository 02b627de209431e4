package tracker

import (
	"fmt"
	"strings"
	"testing"
)

func TestCycles(t *testing.T) {
	t.Parallel()
	for edges, want := range map[string]string{
		"":                       "[]",
		"a-b b-c":                "[]",
		"a-b b-a":                "[[a b]]",
		"a-a":                    "[[a]]",
		"x-a a-b b-c c-a":        "[[a b c]]",
		"a-b b-a c-d d-c":        "[[a b] [c d]]",
		"a-b b-a b-c c-b":        "[[a b]]", // the cycles share b
		"a-b b-c c-a a-d d-c":    "[[a b c]]",
		"a-b b=a":                "[]", // closed
		"a-gone b-elsewhere c-b": "[]",
	} {
		var issues []Issue
		seen := map[string]int{}
		for _, edge := range strings.Fields(edges) {
			from, sign, to := edge[:1], edge[1], edge[2:]
			if _, ok := seen[from]; !ok {
				seen[from] = len(issues)
				issues = append(issues, Issue{Key: from, Open: true})
			}
			i := &issues[seen[from]]
			i.BlockedBy = append(i.BlockedBy, Blocker{Key: to, Open: sign == '-'})
		}
		if got := fmt.Sprint(Cycles(issues)); got != want {
			t.Errorf("%q has %s, want %s", edges, got, want)
		}
	}
}
