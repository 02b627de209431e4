package diff

import (
	"bufio"
	"strings"
	"testing"
)

func FuzzParsers(f *testing.F) {
	f.Add(":100644 120000 a b T\x00link\x00::100644 100644 100644 a b c MM\x00merged\x00")
	f.Fuzz(func(t *testing.T, out string) {
		c := changes{seen: map[string]bool{}, links: map[string]bool{}}
		_, _ = c.addPaths(out)
		for path := range c.links {
			if !c.seen[path] {
				t.Errorf("link %q is not a changed path", path)
			}
		}
		_, _ = parseFiles(bufio.NewReader(strings.NewReader("tip\x00"+out)), "tip")
		(&patchReader{added: func(string, []byte) {}}).line([]byte(out))
		c.added = func(string, []byte) {}
		_ = c.parse(bufio.NewReader(strings.NewReader(out)))
	})
}
