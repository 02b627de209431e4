package git

import (
	"slices"
	"strings"
	"testing"
)

// Every filter is disabled, including the one without a name.
func TestWithoutPrograms(t *testing.T) {
	t.Parallel()
	var values []string
	for _, v := range (Config{{"filter..smudge", "x"}, {"filter.a.b.clean", "x"}, {"filter.smudge", "x"}, {"diff..textconv", "x"}, {"merge.m.driver", "x"}}).WithoutPrograms() {
		_, value, _ := strings.Cut(v, "=")
		values = append(values, value)
	}
	for _, want := range []string{"filter..process", "filter.a.b.process", "diff..textconv", "merge.m.driver"} {
		if !slices.Contains(values, want) {
			t.Errorf("%s is not set in %q", want, values)
		}
	}
}
