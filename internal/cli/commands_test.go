package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// The documentation lists exactly the commands that exist.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range regexp.MustCompile("`ralph ([a-z]+)").FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(line, "| ") {
				listed[m[1]] = true
			}
		}
	}
	root := newRoot(compose.New(compose.Host{}))
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if !c.Hidden && !listed[c.Name()] {
			t.Errorf("ralph %s is not in the list", c.Name())
		}
		delete(listed, c.Name())
	}
	for name := range listed {
		t.Errorf("ralph %s does not exist", name)
	}
}
