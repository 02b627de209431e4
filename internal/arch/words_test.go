package arch_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retired maps retired words to their standard replacements. A phrase also matches its spellings as an identifier and with a
// hyphen: "way out" matches wayOut and way-out, also across the end of a line.
var retired = map[string]string{
	"attendant":         "init process",
	"claim life":        "TTL",
	"claims life":       "TTL",
	"hand back":         "import",
	"handback":          "import",
	"handed back":       "import",
	"hands back":        "import",
	"inert":             "neutralized",
	"lease life":        "TTL",
	"life of a claim":   "TTL",
	"life of the claim": "TTL",
	"mend":              "fix, hint",
	"mended":            "fix, hint",
	"mends":             "fix, hint",
	"pledge":            "two-phase report",
	"pledged":           "two-phase report",
	"spark":             "init process",
	"sparks":            "init process",
	"tongue":            "CLI dialect",
	"tongues":           "CLI dialect",
	"trial":             "preflight check",
	"trials":            "preflight check",
	"untaken":           "unsaved",
	"wall":              "isolation, boundary",
	"walls":             "isolation, boundary",
	"warden":            "seccomp broker",
	"way out":           "egress",
	"wayout":            "egress",
	"ways out":          "egress",
	"withheld":          "redacted",
	"withhold":          "redact",
	"withholds":         "redact",
}

// longest is the number of words of the longest phrase.
const longest = 4

// plain are common phrases that contain a retired word and are allowed.
var plain = []string{"wall clock", "wall time"}

// texts are the suffixes of files that people write.
var texts = []string{".go", ".md", ".mod", ".sh", ".yml", ".yaml", ".tmpl", "Makefile", ".ci/run"}

// skipped are folders without our own texts: downloaded tools, build results and recordings of other programs.
var skipped = []string{".git", ".tools", "bin", "node_modules", "testdata"}

func TestWords(t *testing.T) {
	t.Parallel()
	files := 0
	eachText(t, func(path, text string) {
		files++
		if path == "internal/arch/words_test.go" {
			return
		}
		for _, problem := range checkWords(path, text) {
			t.Error(problem)
		}
	})
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}

// eachText calls f for each text file of the project with its path relative to the root.
func eachText(t *testing.T, f func(path, text string)) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !slices.ContainsFunc(texts, func(end string) bool { return strings.HasSuffix(path, end) }) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		f(filepath.ToSlash(name), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkWords returns the retired words in a file's path and text.
func checkWords(path, text string) (problems []string) {
	for _, phrase := range retiredIn(split(path)) {
		problems = append(problems, fmt.Sprintf("%s: the file's name has %q, which is retired; use: %s", path, phrase.text, retired[phrase.text]))
	}
	for _, phrase := range retiredIn(split(text)) {
		problems = append(problems, fmt.Sprintf("%s:%d: %q is retired; use: %s", path, phrase.line, phrase.text, retired[phrase.text]))
	}
	return problems
}

type word struct {
	text string
	line int
}

// parts matches runs of letters, and separators that end a phrase.
var parts = regexp.MustCompile(`\p{L}+|[^\p{L}\s/_-]|\n`)

// split returns the words of a text in lower case. Each part of an identifier is a word, and so is each separator between phrases.
func split(text string) (words []word) {
	line := 1
	for _, part := range parts.FindAllString(text, -1) {
		if part == "\n" {
			line++
			continue
		}
		begin := 0
		letters := []rune(part)
		for i := range letters {
			if i > begin && unicode.IsUpper(letters[i]) && unicode.IsLower(letters[i-1]) {
				words = append(words, word{strings.ToLower(string(letters[begin:i])), line})
				begin = i
			}
		}
		words = append(words, word{strings.ToLower(string(letters[begin:])), line})
	}
	return words
}

// retiredIn returns the retired phrases with their first lines.
func retiredIn(words []word) (found []word) {
	for i := range words {
		if i+1 < len(words) && slices.Contains(plain, words[i].text+" "+words[i+1].text) {
			continue
		}
		phrase := ""
		for _, next := range words[i:min(i+longest, len(words))] {
			phrase = strings.TrimSpace(phrase + " " + next.text)
			if _, ok := retired[phrase]; ok {
				found = append(found, word{phrase, words[i].line})
			}
		}
	}
	return found
}

func TestCheckWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, text string
		want             string // part of the problem; empty: none
	}{
		{"comment", "a.go", "package a\n// f mends it.\n", `a.go:2: "mends"`},
		{"string", "a.go", `var x = "pledged"`, `"pledged"`},
		{"identifier", "a.go", "func openTrial() {}", `"trial"`},
		{"exported identifier", "a.go", "type WayOut int", `"way out"`},
		{"one-word identifier", "a.go", "var wayout int", `"wayout"`},
		{"constant", "a.go", "WALL_TIMEOUT", `"wall"`},
		{"hyphen", "a.md", "the hand-back", `"hand back"`},
		{"two lines", "a.go", "// the only way\n// out\n", `a.go:1: "way out"`},
		{"key", "a.yaml", "claim-life: 3m", `"claim life"`},
		{"long phrase", "a.md", "The life of a claim", `"life of a claim"`},
		{"file name", "sandboxes/wall_test.go", "package sandboxes", "file's name"},

		{"wall clock", "a.go", "// It goes by the wall clock and wall-clock time.", ""},
		{"wall time", "a.md", "Wall time", ""},
		{"longer words", "a.go", "firewall, recommend, industrial, amendment, sparkline", ""},
		{"life", "a.go", "in real life; life.gone(); a claim. Life goes on", ""},
		{"two clauses", "a.go", "by hand, back to front; either way, out it goes", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := checkWords(tt.path, tt.text)
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("problems: %q", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("problems are %q, want one with %s", got, tt.want)
			}
		})
	}
}
