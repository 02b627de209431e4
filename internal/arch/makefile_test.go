package arch_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Tests that the Makefile selects by name must exist. A renamed test would silently run elsewhere.
func TestMakefileNamesTests(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	eachText(t, func(file, text string) {
		if strings.HasSuffix(file, "_test.go") {
			all.WriteString(text)
		}
	})
	lists := regexp.MustCompile(`(?m)^(?:RACED|LARGE) := \^?Test\((.*)\)`).FindAllSubmatch(makefile, -1)
	if len(lists) != 2 {
		t.Fatalf("%d lists of tests are in the Makefile", len(lists))
	}
	for _, list := range lists {
		for name := range strings.SplitSeq(string(list[1]), "|") {
			if !regexp.MustCompile(`(?m)^func Test` + name + `\(t \*testing\.T\)`).MatchString(all.String()) {
				t.Errorf("no test is called Test%s", name)
			}
		}
	}
}
