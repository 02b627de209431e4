package arch_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testLink matches a link to a test's or suite's file. The test's name is the text or the title of the link.
var testLink = regexp.MustCompile(`\[([^\]]+)\]\(([^)" ]+_test\.go|[^)" ]+test/\w+\.go)(?: "([^"]+)")?\)`)

// For every defence in the threat model there must be a test.
func TestThreatModelNamesItsTests(t *testing.T) {
	t.Parallel()
	const doc = "../../docs/security.md"
	_, table, _ := strings.Cut(read(t, doc), "## Defences")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| against") {
			continue
		}
		rows++
		links := testLink.FindAllStringSubmatch(line, -1)
		if len(links) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, link := range links {
			name, file := link[1], filepath.Join(filepath.Dir(doc), link[2])
			if link[3] != "" {
				name = link[3]
			}
			if !strings.Contains(read(t, file), "\nfunc "+name+"(t *testing.T") {
				t.Errorf("%s has no test %s", link[2], name)
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d defences were read", rows)
	}
}
