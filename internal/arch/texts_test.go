package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// keyName matches configuration keys of two or more words in the table of keys. A single word may be an ordinary word.
	keyName = regexp.MustCompile(`Name: +"([a-z]+(?:[.-][a-z]+)+)"`)
	// commandName matches the names in the table of commands.
	commandName = regexp.MustCompile(`(?m)^\t\t"([a-z]+)": `)
)

// named are the packages below internal/cli whose texts name commands or keys, with the number of such texts. The numbers
// must not grow.
var named = map[string]int{
	"worktree/git": 1, // LockReason
}

// Texts of libraries must not name commands, flags or keys of the program: other programs that embed them have different ones.
func TestTextsOfLibraries(t *testing.T) {
	t.Parallel()
	table := namesOf(t)
	found := map[string]int{}
	for _, p := range list(t, "linux") {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if floor, _ := floorOf(name); !ours || isTestSupport(name) || floor >= composer {
			continue
		}
		for _, file := range p.GoFiles {
			for _, text := range textsNaming(t, table, filepath.Join(p.Dir, file), nil) {
				found[name]++
				if named[name] == 0 {
					t.Errorf("%s/%s: %q names a command, flag or key of the program", name, file, text)
				}
			}
		}
	}
	if !maps.Equal(found, named) && !t.Failed() {
		t.Errorf("texts that name commands or keys: %v, listed are %v", found, named)
	}
}

// namesOf returns a pattern that matches the names reserved for the program's own texts.
func namesOf(t *testing.T) *regexp.Regexp {
	t.Helper()
	all := func(from *regexp.Regexp, pattern string) string {
		files, err := filepath.Glob("../cli/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, file := range files {
			for _, m := range from.FindAllStringSubmatch(read(t, file), -1) {
				names = append(names, regexp.QuoteMeta(m[1]))
			}
		}
		if len(names) < 20 {
			t.Fatalf("%s: only %q", pattern, names)
		}
		return strings.Join(names, "|")
	}
	commands, keys := all(commandName, "root.go"), all(keyName, "config/keys/*.go")
	return regexp.MustCompile("(?:^|[`\"]|: )ralph (?:" + commands + ")\\b|(?:^|[^a-z/._-])(?:--)?(?:" + keys + ")(?:$|[^a-z/._=-])")
}

// textsNaming returns the matching texts of more than one word in a file. A single word is a value.
func textsNaming(t *testing.T, table *regexp.Regexp, path string, src any) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err == nil && len(strings.Fields(text)) > 1 && table.MatchString(text) {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func TestTextsNaming(t *testing.T) {
	t.Parallel()
	const src = `package p
var a = []string{"stop it with: ralph stop", "idle-timeout", "raise idle-timeout", "ralph stops it", "use --state-dir DIR", "see ${T}ralph show x${T}"}`
	got := textsNaming(t, namesOf(t), "p.go", strings.ReplaceAll(src, "${T}", "`"))
	if want := []string{"stop it with: ralph stop", "raise idle-timeout", "use --state-dir DIR", "see `ralph show x`"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
