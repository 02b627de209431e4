package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop/prompt"
)

// codeBlock matches Go code in Markdown.
var codeBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Code in the documentation must be part of an example, which runs as a test.
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

// exported matches a package's exported name in Markdown, such as `pool.Worker.Parked`, or a member of a type.
var exported = regexp.MustCompile("`([A-Za-z]+)\\.([A-Z][A-Za-z]*(?:\\.[A-Z][A-Za-z]*)?)`")

// Names in the documentation must exist.
func TestDocumentedNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	eachText(t, func(file, text string) {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			declared(t, path.Base(path.Dir(file)), text, names)
		}
	})
	for name := range maps.Clone(names) { // `App.Bind` is without its package
		_, member, _ := strings.Cut(name, ".")
		names[member] = true
	}
	names["os.Exit"] = true
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) < 10 {
		t.Fatal(documents, err)
	}
	found := 0
	for _, doc := range append(documents, "../../CONTRIBUTING.md", "../../README.md") {
		for _, m := range exported.FindAllStringSubmatch(read(t, doc), -1) {
			found++
			if !names[m[1]+"."+m[2]] {
				t.Errorf("%s names %s.%s, which does not exist", filepath.Base(doc), m[1], m[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d names", found)
	}
}

// declared adds the declarations of a file to names, as package.Name and package.Type.Member. run.Config is an alias of a
// type in package config, so its members are added for both.
func declared(t *testing.T, pkg, text string, names map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) { names[pkg+"."+name] = true }
	members := func(typ string, list *ast.FieldList) {
		for _, f := range list.List {
			for _, name := range f.Names {
				add(typ + "." + name.Name)
				if pkg == "config" { // run.Config is an alias
					names["run."+typ+"."+name.Name] = true
				}
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				typ := d.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if id, ok := typ.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			add(name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name.Name)
					}
				case *ast.TypeSpec:
					add(s.Name.Name)
					switch typ := s.Type.(type) {
					case *ast.StructType:
						members(s.Name.Name, typ.Fields)
					case *ast.InterfaceType:
						members(s.Name.Name, typ.Methods)
					}
				}
			}
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

// The documentation must describe each key of a prompt template.
func TestDocumentedPromptKeys(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "../../docs/agents.md"), "\n## The prompt\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, key := range prompt.Keys() {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("docs/agents.md does not name {{%s}}", key)
		}
	}
}
