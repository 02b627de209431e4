package script

import (
	"slices"
	"strings"
	"testing"
)

// What an interpreter reads from a pipe, or as a substitution, is code, whatever program prints it.
func TestExecuted(t *testing.T) {
	t.Parallel()
	interpreters := []string{"sh", "bash", "python3", "xargs", "env"}
	for text, want := range map[string]string{
		"cat f | sh": "cat f", "head -5 f | bash -x": "head -5 f", "cat f | tee x | /bin/sh": "cat f|tee x", "cat f |& sh": "cat f",
		"grep -v '^#' f | sh -s -- a": "grep -v '^#' f", "cat f | python3 -": "cat f", "cat f | make -f -": "cat f",
		"(cd a; cat f) | sh": "cd a|cat f", "{ cat f; } | sh": "", "cat f | (sh)": "cat f", "cat f | sudo sh": "cat f", "cat f | xargs sh": "cat f",
		`sh -c "$(cat f)"`: "cat f", `eval "$(cat f)"`: "cat f", "eval `cat f`": "cat f", "$(cat f)": "cat f", "if $(cat f); then x; fi": "cat f",
		"bash <(cat f)": "cat f", ". <(cat f)": "cat f", `sh -c "$(a)$(cat f)"`: "a|cat f", `echo "$(cat f)" | sh`: "echo|cat f",
		"@cat f | sh": "@cat f",

		"cat f | sh check.sh": "", "cat f | python3 -m json.tool": "", "cat f | grep x; sh y": "", "V=$(cat f) sh x": "", "v=\"$(cat f)\"": "",
		"cat f || sh x": "", "cat f; sh": "", "cat f && sh": "", "diff <(cat f) g": "", "if [ \"$(cat f)\" = x ]; then sh y; fi": "", "cat f\nsh": "", "find . -name \"$(cat f)\"": "",
		"cat f 2>&1 | grep x": "", "case x in a) cat f;; esac": "", "cat f | make test": "", "python3 x.py \"$(cat f)\"": "",
		"env V=\"$(cat f)\" make": "", "cat f | xargs grep x": "",
	} {
		var got []string
		for _, c := range commands(text, interpreters) {
			if c := strings.Trim(c.text, " $\""); c != "" {
				got = append(got, c)
			}
		}
		var executed []string
		for _, c := range commands(text, interpreters) {
			if c.executed && strings.Trim(c.text, " $\"") != "" {
				executed = append(executed, strings.Trim(c.text, " $\""))
			}
		}
		if !slices.Equal(executed, strings.FieldsFunc(want, func(r rune) bool { return r == '|' })) {
			t.Errorf("%s: executed %q, want %q of %q", text, executed, want, got)
		}
	}
}

// The time for a text is linear in its length, however deep its groups are and however long its pipes.
func TestLinear(t *testing.T) {
	t.Parallel()
	const deep = 200_000
	for _, text := range []string{strings.Repeat("(", deep) + strings.Repeat("cat f)|sh|", deep), strings.Repeat("cat f|sh|", deep), strings.Repeat("$(", deep), strings.Repeat("do\n", deep) + strings.Repeat("read a\n$a\n", deep)} {
		if n := len(commands(text, []string{"sh"})); n < deep {
			t.Errorf("%d commands", n)
		}
	}
}
