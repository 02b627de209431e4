package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reserved maps calls and variables that libraries must not use to the package that may use them.
var reserved = map[string]string{
	"os.Exit":             "cmd/ralph",
	"os.Stdout":           "internal/cli",
	"os.Stderr":           "internal/cli",
	"os.Stdin":            "internal/cli",
	"os.Args":             "internal/cli",
	"fmt.Print":           "internal/cli",
	"fmt.Printf":          "internal/cli",
	"fmt.Println":         "internal/cli",
	"os.StartProcess":     "internal/proc",
	"exec.Command":        "internal/proc",
	"exec.CommandContext": "internal/proc",
	"context.WithCancel":  "nobody: a cause tells why; use context.WithCancelCause",
}

// excepted are packages that may use some reserved names: internal/proc implements process handling, and sandboxes register
// functions for their own processes during initialization.
var excepted = map[string][]string{
	"sandboxes/container":           {"uses init,"},
	"sandboxes/escape":              {"uses init,"},
	"sandboxes/landlock":            {"uses init,"},
	"sandboxes/native":              {"uses init,"},
	"internal/proc":                 {"exec.CommandContext"},
	"sandboxes/internal/supervisor": {"os.StartProcess"},
	reexec:                          {"os.Exit", "os.Args", "os.Stdin", "os.Stdout", "os.Stderr"},
}

func TestReservedUses(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "linux") {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || isTestSupport(name) {
			continue
		}
		if floor, _ := floorOf(name); floor >= composer {
			continue
		}
		for _, file := range p.GoFiles {
			for _, problem := range inspect(t, filepath.Join(p.Dir, file), nil) {
				if !slices.ContainsFunc(excepted[name], func(use string) bool { return strings.Contains(problem, use) }) {
					t.Errorf("%s/%s", name, problem)
				}
			}
		}
	}
}

// inspect returns the reserved uses in a file. src replaces its content unless it is nil.
func inspect(t *testing.T, path string, src any) (problems []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	say := func(at ast.Node, what, who string) {
		pos := files.Position(at.Pos())
		problems = append(problems, fmt.Sprintf("%s:%d uses %s, which belongs to %s", filepath.Base(path), pos.Line, what, who))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				say(n, "init", "nobody: compose in internal/cli")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				use := x.Name + "." + n.Sel.Name
				if who, ok := reserved[use]; ok {
					say(n, use, who)
				}
			}
		}
		return true
	})
	return problems
}

func TestInspect(t *testing.T) {
	t.Parallel()
	const src = `package p
import "os"
func init() {}
func (x) init() {}
func f() { os.Exit(1); os.Getpid() }
`
	got := inspect(t, "p.go", src)
	if len(got) != 2 || !strings.Contains(got[0], "p.go:3 uses init") || !strings.Contains(got[1], "p.go:5 uses os.Exit") {
		t.Errorf("problems: %q", got)
	}
}
