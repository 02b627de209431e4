package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// ownUse are packages, and names of other packages, that serve only this module. The comment of package pool names them.
var ownUse = []string{"pool/checks", "pool/workspace", "pool/workspace/homes", "pool/redact.Secrets.Finder"}

// TestEmbed: other modules cannot name a type of internal/, so the exported names of other packages must not have one, and must not
// be aliases of one, which `go doc` shows without fields and methods.
func TestEmbed(t *testing.T) {
	t.Parallel()
	const mode = packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedExportFile
	all, err := packages.Load(&packages.Config{Context: t.Context(), Mode: mode, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range all {
		name := strings.TrimPrefix(p.PkgPath, module+"/")
		if p.Name == "main" || isInternal(p.PkgPath) || isExempt(name) {
			continue
		}
		seen++
		for _, e := range p.Errors {
			t.Error(e)
		}
		for _, problem := range unnameable(p.Types) {
			if path, _, _ := strings.Cut(name+"."+problem, " "); !slices.Contains(ownUse, name) && !slices.Contains(ownUse, path) {
				t.Errorf("%s.%s", name, problem)
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d packages were read", seen)
	}
}

// isInternal reports whether other modules cannot import the package.
func isInternal(path string) bool {
	return within(path, module) && slices.Contains(strings.Split(path, "/"), "internal")
}

// unnameable returns the exported names of a package from which a type of internal/ is reached.
func unnameable(p *types.Package) (problems []string) {
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		w := walker{seen: map[*types.TypeName]bool{}}
		if _, isType := object.(*types.TypeName); isType {
			w.declared(object.Type(), name)
		} else {
			w.walk(object.Type(), name)
		}
		problems = append(problems, w.problems...)
	}
	return problems
}

// walker collects the types of internal/ that are reached from an exported name.
type walker struct {
	seen     map[*types.TypeName]bool // those that may contain themselves
	problems []string
}

// declared walks a type's declaration and the signatures of its methods.
func (w *walker) declared(t types.Type, path string) {
	if a, ok := t.(*types.Alias); ok {
		w.walk(a.Rhs(), path)
		return
	}
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			w.walk(m.Type(), path+"."+m.Obj().Name())
		}
	}
	w.walk(t.Underlying(), path)
}

// named walks a type that is only mentioned. The type's own package is judged for its declaration, unless it is not exported.
func (w *walker) named(name *types.TypeName, args *types.TypeList, path string) {
	for arg := range args.Types() {
		w.walk(arg, path)
	}
	switch p := name.Pkg(); {
	case p == nil: // error, for example
	case isInternal(p.Path()):
		w.problems = append(w.problems, fmt.Sprintf("%s has the type %s.%s", path, strings.TrimPrefix(p.Path(), module+"/"), name.Name()))
	case !name.Exported() && !w.seen[name]:
		w.seen[name] = true
		w.declared(name.Type(), path)
	}
}

func (w *walker) walk(t types.Type, path string) {
	switch t := t.(type) {
	case *types.Alias:
		w.named(t.Obj(), t.TypeArgs(), path)
	case *types.Named:
		w.named(t.Obj(), t.TypeArgs(), path)
	case *types.Map:
		w.walk(t.Key(), path)
		w.walk(t.Elem(), path)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		w.walk(t.Elem(), path)
	case *types.TypeParam:
		if !w.seen[t.Obj()] {
			w.seen[t.Obj()] = true
			w.walk(t.Constraint(), path)
		}
	case *types.Signature:
		for list := range slices.Values([]*types.Tuple{t.Params(), t.Results()}) {
			for v := range list.Variables() {
				w.walk(v.Type(), path)
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.walk(f.Type(), path+"."+f.Name())
			} else if f.Embedded() {
				w.walk(f.Type(), path)
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				w.walk(m.Type(), path+"."+m.Name())
			}
		}
	}
}

// sources type-checks packages that have one file.
type sources map[string]string

func (s sources) Import(path string) (*types.Package, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path+".go", s[path], parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return (&types.Config{Importer: s}).Check(path, files, []*ast.File{file}, nil)
}

func TestUnnameable(t *testing.T) {
	t.Parallel()
	const low = module + "/low/internal/low"
	p, err := sources{
		low: "package low; type T struct { N int }",
		"p": `package p
import "` + low + `"
type Alias = low.T
type Config struct { Field *low.T; field *low.T; F func([]low.T); Own Own }
type Own struct { M map[string]chan low.T }
type config struct { Field low.T }
func (*Own) Method() (_ low.T) { return }
func (*Own) method() (_ low.T) { return }
func Make() *hidden { return nil }
type hidden struct { config; Next *hidden }
func (hidden) Method(low.T) {}
type Doer interface { Do(...low.T) }
func Generic[T interface{ Get(T) low.T }](T) {}
var Var [2]low.T
func Fine() (*Own, error) { return nil, nil }
`,
	}.Import("p")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range strings.Fields("Alias Config.F Config.Field Doer.Do Generic.Get Make.Field Make.Method Own.M Own.Method Var") {
		want = append(want, path+" has the type low/internal/low.T")
	}
	got := unnameable(p)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
