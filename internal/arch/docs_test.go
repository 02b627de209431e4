package arch_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// codeBlock is Go code in Markdown.
var codeBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The code in the documentation is code of an example, which runs as a test of its package.
func TestDocumentedCode(t *testing.T) {
	t.Parallel()
	const doc, example = "../../docs/embedding.md", "../../pool/service_example_test.go"
	blocks := codeBlock.FindAllStringSubmatch(read(t, doc), -1)
	if len(blocks) < 3 {
		t.Errorf("%s has %d blocks of code", doc, len(blocks))
	}
	source := read(t, example)
	for _, block := range blocks {
		if !strings.Contains(source, block[1]) {
			t.Errorf("%s has code that is not in %s:\n%s", doc, example, block[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
