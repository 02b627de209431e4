package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// embedded are the packages whose types other programs construct.
var embedded = []string{
	"agents", "loop", "loop/prompt", "pool", "pool/backlog", "pool/gateway", "pool/job", "pool/journal", "pool/journal/sqlite", "pool/ledger", "pool/publish",
	"pool/report", "pool/run/config", "pool/schedule", "sandboxes", "sandboxes/container", "sandboxes/landlock", "sandboxes/native", "sandboxes/runner",
	"sandboxes/sbx", "sandboxes/session", "tracker", "tracker/github", "tracker/gitlab", "tracker/local", "tracker/token", "worktree",
}

// TestFieldsCanBeSet: other modules cannot name a type of internal/, so exported fields must not have one. An alias outside
// of internal/ solves that.
func TestFieldsCanBeSet(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range list(t, "linux") {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || !slices.Contains(embedded, name) {
			continue
		}
		seen++
		for _, file := range p.GoFiles {
			for _, problem := range internalFields(t, filepath.Join(p.Dir, file), nil) {
				t.Errorf("%s/%s", name, problem)
			}
		}
	}
	if seen != len(embedded) {
		t.Errorf("%d of %d packages were read", seen, len(embedded))
	}
}

// internalFields returns the exported fields of exported structs that have a type of internal/. src replaces the file's
// content unless it is nil.
func internalFields(t *testing.T, path string, src any) (problems []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	hidden := map[string]bool{} // names of imported packages
	for _, i := range file.Imports {
		if target, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasPrefix(target, module+"/internal/") {
			hidden[target[strings.LastIndex(target, "/")+1:]] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			exported := slices.ContainsFunc(field.Names, (*ast.Ident).IsExported)
			ast.Inspect(field.Type, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && exported {
					if x, ok := s.X.(*ast.Ident); ok && hidden[x.Name] {
						problems = append(problems, fmt.Sprintf("%s: field %s.%s has the type %s.%s", filepath.Base(path), spec.Name, field.Names[0], x, s.Sel))
					}
				}
				return true
			})
		}
		return true
	})
	return problems
}

func TestInternalFields(t *testing.T) {
	t.Parallel()
	const src = `package p
import "` + module + `/internal/disk"
type Config struct { Guard *disk.Guard; guard *disk.Guard; F func([]disk.Room) }
type config struct { Guard disk.Guard }
type Room = disk.Room
`
	got := internalFields(t, "p.go", src)
	if len(got) != 2 || !strings.Contains(got[0], "Config.Guard has the type disk.Guard") || !strings.Contains(got[1], "Config.F has the type disk.Room") {
		t.Errorf("problems: %q", got)
	}
}
