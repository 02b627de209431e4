package inside

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"7 (sh) S 3 7 7":          3,
		"7 (a) b (x) Z 12 7 7":    12,
		"7 (\n) S 1) R 44 7 7 0 ": 44,
	} {
		if got, ok := parseStat([]byte(text)); !ok || got != want {
			t.Errorf("%q: parent %d, %v", text, got, ok)
		}
	}
	for _, bad := range []string{"", "7 (sh)", "7 (sh) S", "7 (sh) S x"} {
		if got, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: parent %d", bad, got)
		}
	}
	if got, ok := parentOf(os.Getpid()); !ok || got != os.Getppid() {
		t.Errorf("our own parent is %d, %v", got, ok)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (sh) S 3 7 7"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseStat(text) })
}
