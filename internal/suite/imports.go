package suite

import (
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// Found is what a change does to the libraries that tests load.
type Found struct {
	Replaces string   // the module that the new file replaces
	TestOnly []string // packages that the code loads now, and that only tests loaded on the base
	Assigned []string // packages of tests to which the code assigns now
}

// Imports has what the files of a base load. It belongs to one goroutine.
type Imports struct {
	trees  map[string]*tree // by language
	gate   []string
	roleOf func(string) (ecosystem.Role, string)
}

// tree has the modules and imports of a base in one language.
type tree struct {
	language
	modules    map[string]bool            // all modules, by path without extension and index
	byLast     map[string][]string        // the same, by their last part
	parts      map[string]bool            // names of their folders and files
	packages   map[string]bool            // folders whose index the change does not remove
	found      map[string][]string        // results of rootsOf
	uses       map[string]map[use]bool    // imports by tests, by each beginning of the name
	folders    map[string]map[string]bool // roots by folder with tests
	configured map[string]bool            // roots that settings name
	tests      map[string]bool            // packages that tests load
	code       map[string]bool            // packages that other code loads
}

// use is an import by a test: the test's folder, and the full name.
type use struct{ folder, name string }

// MayReplace reports whether changes may do something to what tests load. If not, Imports finds nothing.
func MayReplace(changes []Change) bool {
	return slices.ContainsFunc(languages(), func(l language) bool { return l.Imports.Read != nil && slices.ContainsFunc(changes, l.mayReplace) })
}

// NewImports returns the Imports of a base with the files. It only looks at the languages of the changes.
func NewImports(files []string, changes []Change, gate []string) *Imports {
	m := &Imports{trees: map[string]*tree{}, gate: gate, roleOf: roles(gate)}
	for _, l := range languages() {
		if l.Imports.Read != nil && slices.ContainsFunc(changes, l.mayReplace) {
			m.trees[l.Name] = l.tree(files, changes)
		}
	}
	return m
}

// mayReplace reports whether a change adds a module or changes what code imports.
func (e language) mayReplace(c Change) bool {
	if _, ok := e.moduleOf(c.Path, c.Link); ok && (c.Added || c.OldPath != "" && c.OldPath != c.Path || c.Link) {
		return true
	}
	if c.Removed || !match.Any(e.Sources, c.Path) {
		return false
	}
	now := e.loads(c.New)
	return len(now) > 0 && !slices.Equal(e.loads(c.Old), now) || len(e.assigned(c.New)) > 0
}

// moduleOf returns the path of a module without extension and index. A link without an extension may be a folder.
func (e language) moduleOf(file string, link bool) (string, bool) {
	folder, base := path.Split(file)
	ending := path.Ext(base)
	if !slices.Contains(e.Imports.Endings, ending) {
		return file, link && ending == ""
	}
	name := strings.TrimSuffix(base, ending)
	if ending == ".so" || ending == ".pyd" { // x.cpython-312-x86_64-linux-gnu.so
		name, _, _ = strings.Cut(name, ".")
	}
	if name == e.Imports.Index {
		folder = strings.TrimSuffix(folder, "/")
		return folder, folder != ""
	}
	return folder + name, name != ""
}

func (e language) imports(text []byte) []ecosystem.Import {
	return e.Imports.Read(e.Syntax.Read(text[:min(maxText, len(text))]))
}

// loads returns the packages that a text imports, sorted, without the standard library.
func (e language) loads(text []byte) (all []string) {
	for _, i := range e.imports(text) {
		name := i.Package()
		if !slices.Contains(e.Shadows.Standard, name) || slices.Contains(e.Shadows.Test, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e language) tree(files []string, changes []Change) *tree {
	t := &tree{language: e, modules: map[string]bool{}, byLast: map[string][]string{}, parts: map[string]bool{}, packages: map[string]bool{},
		found: map[string][]string{},
		uses:  map[string]map[use]bool{}, folders: map[string]map[string]bool{}, configured: map[string]bool{},
		tests: map[string]bool{}, code: map[string]bool{}}
	for _, file := range files {
		module, ok := e.moduleOf(file, false)
		if !ok {
			continue
		}
		if e.Imports.Packages && module == path.Dir(file) {
			t.packages[module] = true
		}
		if !t.modules[module] {
			t.modules[module] = true
			t.byLast[path.Base(module)] = append(t.byLast[path.Base(module)], module)
		}
		for part := range strings.SplitSeq(module, "/") {
			t.parts[part] = true
		}
	}
	for _, c := range changes {
		for _, gone := range []string{c.Path, c.OldPath} {
			if c.Removed && gone == c.Path || gone != c.Path {
				if module, ok := e.moduleOf(gone, false); ok && module == path.Dir(gone) {
					delete(t.packages, module)
				}
			}
		}
	}
	return t
}

// pathSetting matches the folders in which settings let Python look for modules.
var pathSetting = pattern.Lazy(`(?m)\bpythonpath\s*=\s*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)|\bPYTHONPATH\s*[:?+]?=[ \t]*(\S*)`)

// Reads reports whether Add needs a file of the base.
func (m *Imports) Reads(file string) bool {
	return m.trees[sourceOf(file).Name] != nil || m.trees["python"] != nil && m.mayConfigure(file)
}

// mayConfigure reports whether a file may say where modules are.
func (m *Imports) mayConfigure(file string) bool {
	role, _ := m.roleOf(file)
	return role == ecosystem.TestConfig || role == ecosystem.GateScript || role == ecosystem.Build
}

// Add adds a file of the base for which Reads is true.
func (m *Imports) Add(file string, text []byte) {
	role, _ := m.roleOf(file)
	if t := m.trees["python"]; t != nil && m.mayConfigure(file) {
		t.configure(path.Dir(file), text)
	}
	t := m.trees[sourceOf(file).Name]
	if t == nil {
		return
	}
	test := role == ecosystem.Test || role == ecosystem.TestConfig || examine(file, text).helper
	for _, i := range t.imports(text) {
		if !test {
			t.code[i.Package()] = true
			continue
		}
		t.tests[i.Package()] = true
		for end := range len(i.Name) + 1 {
			if end == len(i.Name) || i.Name[end] == '/' {
				begin := i.Name[:end]
				if t.uses[begin] == nil {
					t.uses[begin] = map[use]bool{}
				}
				t.uses[begin][use{path.Dir(file), i.Name}] = true
			}
		}
	}
}

// configure adds the folders that a setting in a file of the folder names.
func (t *tree) configure(folder string, text []byte) {
	for _, found := range pathSetting().FindAllSubmatch(text, -1) {
		between := func(r rune) bool { return strings.ContainsRune(" \t\r\n,:;[]\"'", r) }
		for name := range strings.FieldsFuncSeq(string(found[1])+" "+string(found[2]), between) {
			if strings.HasPrefix(name, "$") { // $PWD/src
				_, name, _ = strings.Cut(name, "/")
			}
			t.configured[path.Join(folder, name)] = true
		}
	}
}

// Find fills in what the changes do to the libraries that tests load. All files of the base that it reads have been added.
func (m *Imports) Find(changes []Change) {
	for _, t := range m.trees {
		if t.Name == "python" {
			t.configure(".", []byte(strings.Join(m.gate, "\n")))
		}
		t.search()
		for i, c := range changes {
			if c.Removed {
				continue
			}
			if c.Added || c.Link || c.OldPath != "" && c.OldPath != c.Path {
				if name := t.replaces(c); name != "" {
					changes[i].Found.Replaces = name
				}
			}
			if role, _ := m.roleOf(c.Path); role == ecosystem.None && sourceOf(c.Path).Name == t.Name && !c.Link {
				changes[i].Found.TestOnly, changes[i].Found.Assigned = t.library(c)
			}
		}
	}
}

// search finds the roots of each folder with tests: the folders in which modules are looked for.
func (t *tree) search() {
	uses := map[use]bool{}
	for _, of := range t.uses {
		for u := range of {
			uses[u] = true
		}
	}
	for u := range uses {
		if t.folders[u.folder] != nil {
			continue
		}
		roots := map[string]bool{}
		for root := range t.configured {
			roots[root] = true
		}
		for _, folder := range parentFolders(u.folder + "/x") {
			if !t.Imports.Beside || t.packages[folder] && folder != u.folder {
				continue
			}
			roots[folder] = true
			for _, below := range t.Imports.Roots {
				roots[path.Join(folder, below)] = true
			}
		}
		t.folders[u.folder] = roots
	}
	// Where tests already find modules that no usual root has, there is a root, too, whatever settings say so.
	inferred := map[use]bool{}
	for u := range uses {
		usual := false
		for root := range t.folders[u.folder] {
			if usual = t.has(root, u.name); usual {
				break
			}
		}
		if usual || !t.Imports.Beside && !strings.Contains(u.name, "/") {
			continue
		}
		names := []string{u.name}
		if t.Imports.Packages {
			names = append(names, ecosystem.Import{Name: u.name}.Package())
		}
		for _, name := range names {
			for _, root := range t.rootsOf(name) {
				inferred[use{u.folder, root}] = true
			}
		}
	}
	for in := range inferred {
		t.folders[in.folder][in.name] = true
	}
}

// rootsOf returns the folders below which the base has the named module.
func (t *tree) rootsOf(name string) []string {
	roots, known := t.found[name]
	if !known {
		for _, module := range t.byLast[path.Base(name)] {
			if root, ok := strings.CutSuffix("./"+module, "/"+name); ok {
				roots = append(roots, path.Clean(root))
			}
		}
		t.found[name] = roots
	}
	return roots
}

// has reports whether the base has the named module below a root.
func (t *tree) has(root, name string) bool {
	for end := range len(name) + 1 {
		whole := end == len(name)
		if (whole || name[end] == '/' && t.Imports.Packages) && t.modules[path.Join(root, name[:end])] {
			return true
		}
	}
	return false
}

// replaces returns the module that tests find at a new path instead of elsewhere.
func (t *tree) replaces(c Change) string {
	module, ok := t.moduleOf(c.Path, c.Link)
	if !ok {
		return ""
	}
	for _, roots := range t.folders {
		if c.Link && roots[c.Path] {
			return c.Path // all modules below it
		}
	}
	if t.modules[module] {
		return ""
	}
	for root := "."; ; {
		begin := module
		if root != "." {
			begin = module[len(root)+1:]
		}
		for u := range t.uses[begin] {
			if t.folders[u.folder][root] && !t.has(root, u.name) {
				return begin
			}
		}
		next, _, more := strings.Cut(begin, "/")
		if !more {
			return ""
		}
		root = path.Join(root, next)
	}
}

// library returns what code does to packages that tests load.
func (t *tree) library(c Change) (only, assigned []string) {
	foreign := func(name string) bool {
		first, _, _ := strings.Cut(name, "/")
		return t.tests[name] && !t.parts[first]
	}
	before := t.loads(c.Old)
	if len(t.Shadows.Standard) == 0 {
		before = t.loads(c.New) // the language's own modules are not known
	}
	for _, name := range t.loads(c.New) {
		if foreign(name) && !t.code[name] && !slices.Contains(before, name) {
			only = append(only, name)
		}
	}
	before = t.assigned(c.Old)
	for _, name := range t.assigned(c.New) {
		if foreign(name) && !slices.Contains(before, name) && name != "sys" && name != "os" {
			assigned = append(assigned, name)
		}
	}
	return only, assigned
}
