package script

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// imports matches, for each language, the names that a text imports, and what makes a path of a name.
var imports = []struct { //nolint:gochecknoglobals // read-only table
	names     func() *regexp.Regexp
	separator string // of the parts of a name
	endings   []string
}{
	{pattern.Lazy(`\bimport[ \t]+([\w., \t]+)`), ".", []string{".py", "/__init__.py"}},
	{pattern.Lazy(`\bfrom[ \t]+\.*([\w.]*)[ \t]+import\b[ \t(]*([\w, \t]*)`), ".", []string{".py", "/__init__.py"}},
	{pattern.Lazy(`\b(?:use|require)[ \t]+(\w+(?:::\w+)*)`), "::", []string{".pm"}},
	{pattern.Lazy(`\brequire[ \t(]*["']([\w.-]+)["']`), ".", []string{".lua", "/init.lua"}},
}

var (
	// roots matches settings of the folders in which modules are looked for, up to the end of the line.
	roots = pattern.Lazy(`\buse[ \t]+lib\b(.*)|\bsys\.path\b(.*)`)
	// quoted matches the words in quotes.
	quoted = pattern.Lazy(`["'(]([\w./ -]+)["')]`)
	// relative matches the import of a file by its path: import "./a", require_relative "a".
	relative = pattern.Lazy("[\"'`](\\.\\.?/[^\"'`\n]*)[\"'`]|\\brequire_relative[ \t(]*[\"']([\\w./-]+)")
)

// maxRoots limits the folders in which the modules of a script are looked for.
const maxRoots = 16

// modules returns the files that a script in a folder may import. Folders with the code under test do not count as places to
// look for modules: what a script of the gate finds there may be the work itself.
func modules(folder, text string) (files []string) {
	folders := []string{folder, ""}
	for _, setting := range roots().FindAllStringSubmatch(text, -1) {
		for _, word := range quoted().FindAllStringSubmatch(setting[1]+setting[2], -1) {
			for name := range strings.FieldsSeq(word[1]) {
				for _, root := range []string{path.Join(folder, name), path.Join(name)} {
					if len(folders) < maxRoots && !isCode(root) && !strings.HasPrefix(root, "..") {
						folders = append(folders, root)
					}
				}
			}
		}
	}
	for _, kind := range imports {
		for _, found := range kind.names().FindAllStringSubmatch(text, -1) {
			for _, name := range importedNames(found[1:]) {
				name = strings.ReplaceAll(strings.Trim(name, "."), kind.separator, "/")
				for _, root := range folders {
					for _, ending := range kind.endings {
						files = append(files, path.Join(root, name)+ending)
					}
				}
			}
		}
	}
	for _, found := range relative().FindAllStringSubmatch(text, -1) {
		file := path.Join(folder, found[1]+found[2])
		if isCode(file) {
			continue
		}
		bare := strings.TrimSuffix(strings.TrimSuffix(file, ".js"), ".mjs")
		for _, ending := range []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".rb"} {
			files = append(files, file+ending, bare+ending, file+"/index"+ending)
		}
	}
	return files
}

// isCode reports whether a file or folder stands with the code under test.
func isCode(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	return slices.Contains([]string{"lib", "src", "blib"}, first)
}

// importedNames returns the names of an import: a and a.b of "from a import b", a and c of "import a as b, c".
func importedNames(parts []string) (names []string) {
	from := ""
	if len(parts) == 2 {
		from = parts[0] + "."
		names, parts = append(names, parts[0]), parts[1:]
	}
	for name := range strings.SplitSeq(parts[0], ",") {
		if fields := strings.Fields(name); len(fields) > 0 {
			names = append(names, from+fields[0])
		}
	}
	return names
}
