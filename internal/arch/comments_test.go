package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// TestComments: renaming a declaration does not rename it in comments.
func TestComments(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	packages := map[string][]*ast.File{}
	eachText(t, func(name, text string) {
		if strings.HasSuffix(name, ".go") {
			packages[path.Dir(name)] = append(packages[path.Dir(name)], parse(t, files, name, text))
		}
	})
	if len(packages) < 100 {
		t.Errorf("only %d packages were read", len(packages))
	}
	for _, p := range packages {
		for _, problem := range staleComments(files, p) {
			t.Error(problem)
		}
	}
}

func parse(t *testing.T, files *token.FileSet, name, text string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// staleComments returns the doc comments of a package that name something else than they describe, or a member that does not
// exist. The linter checks the first word for exported names.
func staleComments(files *token.FileSet, p []*ast.File) (problems []string) {
	names := map[string]bool{}
	for _, file := range p {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	for _, file := range p {
		check := func(name *ast.Ident, doc *ast.CommentGroup) {
			at := files.Position(name.Pos())
			if words := strings.Fields(doc.Text()); len(words) > 0 && !name.IsExported() && !begins(words[0], name.Name, at.Filename) {
				problems = append(problems, fmt.Sprintf("%s:%d: the comment of %s begins with %q", at.Filename, at.Line, name, words[0]))
			}
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(d.Name, d.Doc)
				for _, member := range missing(d, names) {
					at := files.Position(d.Pos())
					problems = append(problems, fmt.Sprintf("%s:%d: the comment of %s names %s, which does not exist", at.Filename, at.Line, d.Name, member))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					s, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					if d.Lparen == token.NoPos {
						check(s.Name, d.Doc)
					} else {
						check(s.Name, s.Doc)
					}
				}
			}
		}
	}
	return problems
}

// begins reports whether a comment that begins with the word may describe the name. In tests it may be a sentence about the
// program, as above a test, but not begin with the name's earlier, exported spelling.
func begins(word, name, file string) bool {
	word = strings.TrimRight(word, ",.:;")
	return word == name || strings.TrimSuffix(word, "'s") == name ||
		strings.HasSuffix(file, "_test.go") && unicode.IsUpper(rune(word[0])) && !strings.EqualFold(word, name)
}

// selection matches a member of a parameter, such as p.queue.
var selection = regexp.MustCompile(`\b([a-z]\w*)\.([A-Za-z]\w*)\b`)

// missing returns the members of the function's receiver and parameters that its comment names and the package does not.
func missing(f *ast.FuncDecl, names map[string]bool) (members []string) {
	own := map[string]bool{}
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				own[name.Name] = true
			}
		}
	}
	for _, m := range selection.FindAllStringSubmatch(f.Doc.Text(), -1) {
		if own[m[1]] && !names[m[2]] {
			members = append(members, m[0])
		}
	}
	return members
}

func TestStaleComments(t *testing.T) {
	t.Parallel()
	const src = `package p

// Open opens.
func open() {}

// close closes. The caller holds d.mu.
func (d *door) close() { d.lock() }

// lock locks. The caller holds d.door, as mu.door and d.close say.
func (d *door) lock() {}

// doors are several.
type door struct{}
`
	files := token.NewFileSet()
	for name, want := range map[string][]string{
		"p.go": {
			`p.go:4: the comment of open begins with "Open"`, `p.go:7: the comment of close names d.mu, which does not exist`,
			`p.go:13: the comment of door begins with "doors"`,
		},
		"p_test.go": {
			`p_test.go:4: the comment of open begins with "Open"`, `p_test.go:7: the comment of close names d.mu, which does not exist`,
			`p_test.go:13: the comment of door begins with "doors"`,
		},
	} {
		got := staleComments(files, []*ast.File{parse(t, files, name, src)})
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("problems: %q", got)
		}
	}
	for word, want := range map[string]bool{"open": true, "open's": true, "open:": true, "Doors": true, "Open": false, "opens": false} {
		if got := begins(word, "open", "p_test.go"); got != want {
			t.Errorf("%q: %v", word, got)
		}
	}
}
