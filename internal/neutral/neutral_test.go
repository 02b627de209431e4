package neutral

import (
	"regexp"
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
		"Fixes PROJ-12 and UTF-8":                      "Fixes PROJ- 12 and UTF-8",
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
var active = regexp.MustCompile(`(?im)(^|[^a-z0-9])@[a-z0-9_]|#[\pL\pN_]|\bg[hl]-\d|/issues/\d|/merge_requests/\d|<!--|^[ \t]*/[a-z][\w-]*([ \t]|$)|` +
	`\[(skip[ _-]ci|ci[ _-]skip|no ci|skip actions|actions skip)\]|^skip-checks:|\*\*\*NO_CI\*\*\*`)

func FuzzText(f *testing.F) {
	for _, s := range []string{"Closes #1 @a@b", "[[skip ci]]", "/x\n/y", "skip-checks:", "***NO_CI***", "fixes A-1", "\xff#\xff1", "[issue:#1]"} {
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
