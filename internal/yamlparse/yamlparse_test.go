package yamlparse

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// size is the size limit of callers, in bytes.
const size = 64 << 10

// hostile are texts of about that size.
func hostile() map[string]string {
	fill := func(begin, part, end string) string {
		n := (size - len(begin)) / (len(part) + len(end))
		return begin + strings.Repeat(part, n) + strings.Repeat(end, n)
	}
	return map[string]string{
		"lists": fill("gate: ", "[", "]"), "open lists": fill("gate: ", "[", ""), "mappings": fill("", "{a: ", "}"), "over lines": fill("a: ", "[\n", "]"),
		"signs of lists": fill("", "- ", "") + "x", "signs of keys": fill("", "? ", "") + "x", "keys in a line": fill("a: ", "b: ", "") + "x",
		"anchors": fill("a: ", "&a ", "") + "x", "tags": fill("a: ", "!!a ", "") + "x", "keys": fill("", "a: 1\n", ""), "items": fill("a:\n", "- b\n", ""),
		"quotes": fill("a: ", "'", ""), "documents": fill("", "---\n", ""), "aliases": fill("a: &a 1\nb: [", "*a,", "") + "]",
	}
}

// No text takes a disproportionate amount of memory.
func TestHostile(t *testing.T) { //nolint:paralleltest // it measures the whole process
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			file, err := Parse([]byte(text))
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(file)
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1000*size {
				t.Errorf("%d bytes keep %d", len(text), kept)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 50_000*size {
				t.Errorf("%d bytes made %d", len(text), made)
			}
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return "a: 1\nb: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]string{
		nested(deepest):     "",
		nested(deepest + 1): "line 2: more than 64 levels stand inside each other",
		"a: |\n" + strings.Repeat("  - [ ] to do\n", 500): "",
		"x: 1\n" + strings.Repeat("- ", deepest+1) + "a":  "line 2: more than 64 levels stand inside each other",
		"a: [1, 2\nb: 3":             "line 1: the [ has no ] after it",
		"a: 1\nb: {c: [1]\nd: [2]\n": "line 2: the { has no } after it",
		"a: {b: [c]\n  d: e}\n":      "line 2: ',' or '}' must be specified",
		"a: {" + strings.Repeat("\n", 3) + strings.Repeat("[", deepest+1) + "\n}": "line 4: more than 64 levels stand inside each other",
	} {
		_, err := Parse([]byte(text))
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%.40q: %s, want %q", text, got, want)
			}
		} else if want != "" {
			t.Errorf("%.40q is taken, want %q", text, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range hostile() {
		f.Add([]byte(text[:min(len(text), 300)]))
	}
	f.Add([]byte("a: [1, {b: c}]\n- x"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > size {
			t.Skip()
		}
		file, err := Parse(src)
		if _, ok := errors.AsType[*Error](err); (err == nil) == (file == nil) || err != nil && !ok {
			t.Errorf("%v, %v", file, err)
		}
	})
}
