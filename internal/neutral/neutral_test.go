package neutral

import (
	"regexp"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Closes #2, fixes acme/widgets#2":              "Closes # 2, fixes acme/widgets# 2",
		"Implements !7":                                "Implements ! 7",
		"closes GH-3 and GL-4":                         "closes GH- 3 and GL- 4",
		"Closes [issue:12], [work_item:g/p/1]":         "Closes [issue: 12], [work_item: g/p/1]",
		"fix https://f.example/a/b/-/issues/5":         "fix https://f.example/a/b/-/issues/ 5",
		"https://f.example/a/b/-/issues/incident/5":    "https://f.example/a/b/-/issues/incident/ 5",
		"/issues//5 and /work_items/2":                 "/issues// 5 and /work_items/ 2",
		"see &12, group&12 and g/s&amp;12, a&b":        "see & 12, group& 12 and g/s&amp; 12, a&b",
		"Fixes PROJ-12 and UTF-8 is UTF-8":             "Fixes PROJ- 12 and UTF- 8 is UTF-8",
		"Closes PROJ-1, PROJ-2,PROJ-3":                 "Closes PROJ- 1, PROJ- 2,PROJ- 3",
		"Fixes #1 and PROJ-2; see PROJ-3":              "Fixes # 1 and PROJ- 2; see PROJ-3",
		"Fixes acme/widgets#1 & issue PROJ-2":          "Fixes acme/widgets# 1 & issue PROJ- 2",
		"Closes https://f.example/issues/5 and PROJ-2": "Closes https://f.example/issues/ 5 and PROJ- 2",
		"FiXes, AA-0":                                  "FiXes, AA- 0",
		"Resolves\tKEY-1":                              "Resolves\tKEY- 1",
		"fixes\nKEY-3":                                 "fixes\nKEY- 3",
		"Fixes and1 &, (PROJ-2)":                       "Fixes and1 &, (PROJ- 2)",
		"Fixes:\n- KEY-1\n- KEY-2":                     "Fixes:\n- KEY- 1\n- KEY- 2",
		"Fix 2 bugs of UTF-8, closes none":             "Fix 2 bugs of UTF-8, closes none",
		"@everyone @user @group/team (@x)":             "@ everyone @ user @ group/team (@ x)",
		"build [skip ci] [CI Skip] [no ci]":            "build [ skip ci] [ CI Skip] [ no ci]",
		"[skip actions] [actions skip] [ci-skip]":      "[ skip actions] [ actions skip] [ ci-skip]",
		"[skip azurepipelines] [CF-Pages-Skip]":        "[ skip azurepipelines] [ CF-Pages-Skip]",
		"***NO_CI***":                                  "*** NO_CI***",
		"Subject\n\n\nskip-checks: true\nSkip-Checks:": "Subject\n\n\nskip- checks: true\nSkip- Checks:",
		"/tag v1\n  /close":                            "\\/tag v1\n  \\/close",
		"Add a list[skip] and a[no] and [x]":           "Add a list[skip] and a[no] and [x]",
		"Fix the parser of a@b.example, UTF-8, C# 4\n\nCo-authored-by: A B <a@b.example>": "Fix the parser of a@b.example, UTF-8, C# 4\n\nCo-authored-by: A B <a@b.example>",
		"caf\xe9 #1": "caf\xe9 # 1",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

// active matches text that a service would act on.
var active = regexp.MustCompile(`(?im)(^|[^a-z0-9])@[a-z0-9_]|#[\pL\pN_]|\bg[hl]-\d|/issues/(\S*/)?\d|/merge_requests/\d|&(amp;)?\d|<!--|^[ \t]*/[a-z][\w-]*([ \t]|$)|` +
	`\b(fixes|resolves)[:,]?\s+((and|[A-Z]{2,9}-\d+,?)\s+)*(?-i:[A-Z]{2,9})-\d|\[(skip[ _-]ci|ci[ _-]skip|no ci|skip actions|actions skip)\]|^skip-checks:|\*\*\*NO_CI\*\*\*`)

func FuzzText(f *testing.F) {
	for _, s := range []string{"Closes #1 @a@b", "[[skip ci]]", "/x\n/y", "skip-checks:", "***NO_CI***", "fixes A-1", "\xff#\xff1", "[issue:#1]", "Fixes AB-1, CD-2", "FiXes, AA-0", "/issues/x/1/2", "&1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if m := active.FindString(got); m != "" {
			t.Fatalf("Text(%q) = %q leaves %q active", s, got, m)
		}
		if again := Text(got); again != got {
			t.Fatalf("Text(%q) = %q, then %q", s, got, again)
		}
	})
}

// Long lists must not need a pass for each key: an action needs one pass, a second one where matches share a character, and
// a last one that finds nothing.
func TestLongLists(t *testing.T) {
	t.Parallel()
	const many = 1000
	for in, want := range map[string]string{" AB-1": " AB- 1", "/issues/1/1": "/issues/ 1/ 1", "&1": "& 1", " @_@_": " @ _@ _"} {
		text := "Closes" + strings.Repeat(in, many)
		for _, a := range actions() {
			next, passes := a.replaceAll(text)
			if text = next; passes > 3 {
				t.Errorf("%v takes %d passes over many %q", a.pattern, passes, in)
			}
		}
		if wanted := "Closes" + strings.Repeat(want, many); text != wanted || Text(text) != wanted {
			t.Errorf("Text of many %q ends in %q", in, text[len(text)-50:])
		}
	}
}
