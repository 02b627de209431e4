package ecosystem

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

// Imports says how files of a language name the modules that they load, and where these are looked for in a repository.
type Imports struct {
	// Read returns the imports in a text, without those of files relative to it. nil: unknown.
	Read func(lex.Source) []Import
	// Endings are the extensions of modules. Index is the name, without its extension, of a file that stands for its folder.
	Endings []string
	Index   string
	// Beside means that modules are looked for in the folders of the importing file: in its own, and in those above it.
	Beside bool
	// Roots are folders below those in which modules are looked for, too.
	Roots []string
	// Packages means that a folder with an Index has all modules whose names begin with its own, and that the folders of
	// its modules are not searched.
	Packages bool
}

// Import is one import of a text.
type Import struct {
	Name string // of the module, with slashes between its parts: a/b
	As   string // the variable that stands for the module or a part of it; may be empty
}

// Package returns the first part of a name, which is what gets installed: @a/b of @a/b/c, a of a/b.
func (i Import) Package() string {
	first, rest, _ := strings.Cut(i.Name, "/")
	if strings.HasPrefix(first, "@") {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}

// wordAt returns the word at an index of a text, or an empty one.
func wordAt(s lex.Source, i int) string { return tokenAt(s, i, lex.Word) }

// stringAt returns the content of the string at an index of a text, or an empty one.
func stringAt(s lex.Source, i int) string { return tokenAt(s, i, lex.String) }

func tokenAt(s lex.Source, i int, kind lex.Kind) string {
	if i < 0 || i >= len(s.Tokens) || s.Tokens[i].Kind != kind {
		return ""
	}
	return string(s.Tokens[i].Of(s.Text))
}

// pythonImports reads import, from … import, and calls that name a module.
func pythonImports(s lex.Source) (all []Import) {
	dotted := func(i int) (parts []string, next int) {
		for ; wordAt(s, i) != "" && wordAt(s, i) != "import"; i += 2 {
			if parts = append(parts, wordAt(s, i)); !s.Is(i+1, ".") {
				return parts, i + 1
			}
		}
		return parts, i
	}
	named := func(name string) { all = append(all, Import{Name: strings.ReplaceAll(name, ".", "/")}) }
	for i := 0; i < len(s.Tokens); i++ {
		word := wordAt(s, i)
		switch {
		case s.Is(i-1, "."):
			if (word == "import_module" || word == "importorskip") && s.Is(i+1, "(") && stringAt(s, i+2) != "" {
				named(stringAt(s, i+2))
			}
			if word == "modules" && (s.Is(i+1, "[") || s.Is(i+1, ".") && s.Is(i+3, "(")) { // sys.modules
				if name := stringAt(s, i+2) + stringAt(s, i+4); name != "" {
					named(name)
				}
			}
		case word == "from":
			from := i + 1
			for s.Is(from, ".") {
				from++
			}
			parts, next := dotted(from)
			if !s.Is(next, "import") { // raise … from
				continue
			}
			names := pythonNames(s, next+1, strings.Join(parts, "/"))
			if from == i+1 {
				all = append(all, names...)
			}
			i = next
		case word == "import":
			for next := i; next == i || s.Is(next, ","); {
				var parts []string
				if parts, next = dotted(next + 1); len(parts) == 0 {
					break
				}
				as := parts[0]
				if s.Is(next, "as") {
					as, next = wordAt(s, next+1), next+2
				}
				all = append(all, Import{strings.Join(parts, "/"), as})
			}
		case (word == "__import__" || word == "import_module" || word == "importorskip") && s.Is(i+1, "(") && stringAt(s, i+2) != "":
			named(stringAt(s, i+2))
		case word == "pytest_plugins" && s.Is(i+1, "="):
			for j := i + 2; s.Is(j, "[") || s.Is(j, "(") || s.Is(j, ",") || stringAt(s, j) != ""; j++ {
				if stringAt(s, j) != "" {
					named(stringAt(s, j))
				}
			}
		}
	}
	return all
}

// pythonNames reads the names after from … import. Each may be a module.
func pythonNames(s lex.Source, i int, from string) (all []Import) {
	if s.Is(i, "*") {
		return []Import{{Name: from}}
	}
	if s.Is(i, "(") {
		i++
	}
	for wordAt(s, i) != "" {
		one := Import{from + "/" + wordAt(s, i), wordAt(s, i)}
		if i++; s.Is(i, "as") {
			one.As, i = wordAt(s, i+1), i+2
		}
		all = append(all, one)
		if !s.Is(i, ",") {
			break
		}
		i++
	}
	return all
}

// jsImportsOf reads import, export … from, require, and mocks of modules.
func jsImportsOf(s lex.Source) (all []Import) {
	for i := range s.Tokens {
		name := stringAt(s, i)
		if name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.Contains(name, ":") {
			continue
		}
		called := s.Is(i-1, "(") && (s.Is(i-2, "require") || s.Is(i-2, "import") || s.Is(i-2, "mock") || s.Is(i-2, "doMock"))
		one := Import{Name: name}
		switch {
		case called && s.Is(i-3, "=") && s.Is(i-2, "require"):
			one.As = wordAt(s, i-4)
		case called && s.Is(i-3, "await") && s.Is(i-4, "="):
			one.As = wordAt(s, i-5)
		case s.Is(i-1, "from"):
			one.As = wordAt(s, i-2)
		case !called && !s.Is(i-1, "import"):
			continue
		}
		all = append(all, one)
	}
	return all
}

// rubyImports reads require.
func rubyImports(s lex.Source) (all []Import) {
	for i := range s.Tokens {
		at := i + 1
		if s.Is(at, "(") {
			at++
		}
		name := stringAt(s, at)
		if s.Is(i, "require") && name != "" && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/") {
			all = append(all, Import{Name: strings.TrimSuffix(name, ".rb")})
		}
	}
	return all
}
