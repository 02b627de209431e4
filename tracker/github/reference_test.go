package github

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlockersInText(t *testing.T) {
	t.Parallel()
	here := func(numbers ...int) (all []reference) {
		for _, n := range numbers {
			all = append(all, reference{number: n})
		}
		return all
	}
	for text, want := range map[string][]reference{
		"Blocked by #12":                                here(12),
		"blocked by: #12, #13 and #14":                  here(12, 13, 14),
		"- depends on #1\n- depends on #2\n":            here(1, 2),
		"**Blocked by:** #3":                            here(3),
		"Blocked-by: GH-4":                              here(4),
		"blocked by o/r#5":                              here(5),
		"blocked by O/R#5, other/x#6":                   {{number: 5}, {"other/x", 6}},
		"depends on https://h/o/r/issues/7":             here(7),
		"depends on https://h/o/r/pull/8":               here(8),
		"depends on https://elsewhere/o/r/pull/8":       nil,
		"blocked by #1, #1 & #1":                        here(1),
		"unblocked by #1":                               nil,
		"see #1":                                        nil,
		"blocked by the weather, see #1":                nil,
		"blocked by #0":                                 nil,
		"blocked by #99999999999999999999":              nil,
		"`blocked by #1`":                               nil,
		"```\nblocked by #1\n```\n":                     nil,
		"````\n```\nblocked by #1\n````\nblocked by #2": here(2),
		"> blocked by #1":                               nil,
		"<!-- blocked by #1 -->":                        nil,
		"<!-- blocked by #1":                            nil,
		"blocked by ../..#1":                            nil,
		"blocked by\n#1":                                nil,
	} {
		if diff := cmp.Diff(want, blockersIn(text, "h", "o/r"), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestClosedByText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"closes #1": 1, "Fixes: #2": 1, "resolved o/r#3 and fix #4": 2, "This closes the door #1": 0, "closing #1": 0, "fixes #1, #2": 1, "prefixes #1": 0, "See #5 `closes #5`": 0,
	} {
		if got := len(closedIssues(text, "h", "o/r")); got != want {
			t.Errorf("%q closes %d, want %d", text, got, want)
		}
	}
}

func FuzzBlockersIn(f *testing.F) {
	for _, s := range []string{"blocked by #12, o/r#3 and GH-4", "depends on https://h/o/r/issues/7", "```\nblocked by #1", "<!--", "> x", "`a`", strings.Repeat("blocked by #1 ", 99)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := append(blockersIn(text, "h", "o/r"), closedIssues(text, "h", "o/r")...)
		if len(all) > 2*maxReferences {
			t.Fatalf("%d references", len(all))
		}
		for _, r := range all {
			owner, name, _ := strings.Cut(r.project, "/")
			if r.number <= 0 || (r.project != "" && (!ownerName().MatchString(owner) || !repositoryName().MatchString(name) || name == "..")) {
				t.Fatalf("%q gives %+v", text, r)
			}
		}
	})
}
