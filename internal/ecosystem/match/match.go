// Package match matches paths of a repository against the patterns of package ecosystem. Its functions are pure.
package match

import (
	"path"
	"slices"
	"strings"
)

// Any reports whether one of the patterns matches the path.
//
// A pattern is like a line of .gitignore: "*.mk" matches a file in any folder, "tests/" everything below a folder of that name,
// "tests/*.rs" a file directly in such a folder, "spec/**/*.rb" one at any depth below it, and "/bin/" starts at the root.
func Any(patterns []string, file string) bool {
	base := file[strings.LastIndexByte(file, '/')+1:]
	var folders []string // split only when a pattern needs them
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if !strings.Contains(pattern, "/") { // true for most patterns
			return ofName(pattern, base)
		}
		if folders == nil {
			folders = strings.Split(file, "/")
		}
		pattern, below := strings.CutSuffix(pattern, "/")
		pattern, root := strings.CutPrefix(pattern, "/")
		parts := strings.Split(pattern, "/")
		for i := range folders {
			if ofParts(parts, folders[i:], below) {
				return true
			}
			if root {
				break
			}
		}
		return false
	})
}

// ofParts matches the parts of a pattern. below means that the pattern names a folder, so that more parts must follow.
func ofParts(parts, folders []string, below bool) bool {
	for i, part := range parts {
		if part == "**" {
			for j := i; j < len(folders); j++ {
				if ofParts(parts[i+1:], folders[j:], below) {
					return true
				}
			}
			return false
		}
		if i >= len(folders) || !ofName(part, folders[i]) {
			return false
		}
	}
	if below {
		return len(folders) > len(parts)
	}
	return len(folders) == len(parts)
}

// ofName matches a name against a pattern whose only special character is *. Most time is spent here.
func ofName(pattern, name string) bool {
	i := strings.IndexByte(pattern, '*')
	if i < 0 {
		return pattern == name
	}
	begin, end := pattern[:i], pattern[i+1:]
	if strings.IndexByte(end, '*') >= 0 {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	return len(name) >= len(begin)+len(end) && strings.HasPrefix(name, begin) && strings.HasSuffix(name, end)
}

// Foreign lists folders whose content is not code of the repository itself.
const Foreign = "node_modules vendor testdata fixtures .venv venv"

// Within reports whether the path is below a folder with one of the names.
func Within(file, names string) bool {
	for folder := range strings.SplitSeq(path.Dir(file), "/") {
		for name := range strings.FieldsSeq(names) {
			if folder == name {
				return true
			}
		}
	}
	return false
}
