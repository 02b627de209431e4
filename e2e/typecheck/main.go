// Command typecheck checks that the module and its tests compile for other platforms: typecheck GOOS/GOARCH…. It does not compile:
// it reads only the declarations of dependencies and the complete files of this module, which takes a small part of the time.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, target := range os.Args[1:] {
		fmt.Println(target)
		if err := check(target); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed || len(os.Args) < 2 {
		os.Exit(1)
	}
}

// check loads the module in the working directory for one target and returns the type errors.
func check(target string) error {
	system, processor, found := strings.Cut(target, "/")
	if !found {
		return fmt.Errorf("%s: no GOOS/GOARCH", target)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedTypesSizes | packages.NeedModule,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution|parser.ParseComments)
			// Files that go generates, such as the main functions of test programs, do not end in .go.
			foreign := strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, root+string(filepath.Separator))
			if file != nil && foreign {
				dropBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if len(loaded) == 0 {
		return fmt.Errorf("%s: no packages in %s", target, root)
	}
	var problems []string
	seen := map[string]bool{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			if !seen[e.Error()] { // a package and its test variant report the same errors
				seen[e.Error()] = true
				problems = append(problems, e.Error())
			}
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s:\n%s", target, strings.Join(problems, "\n"))
	}
	return nil
}

// dropBodies keeps only the declarations of a dependency's file: its functions are not checked here.
func dropBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
