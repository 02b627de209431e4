package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/nearest"
)

// Service is the user's file that lists the projects of a service.
type Service struct {
	Parallel int // issues worked at the same time in all projects; 0: no limit
	Projects []Project
}

// Project is one project of a service. Its keys override everything but flags.
type Project struct {
	Name string // unique and valid in URLs
	Repo string // absolute
	path string
	keys []*ast.MappingValueNode
}

// ServiceFile returns the default path of the service's file.
func ServiceFile(environ []string) string {
	return filepath.Join(filepath.Dir(UserFile(environ)), "serve.yaml")
}

// ReadService reads a service's file; see Sources for choices. Its error is a Problems.
func ReadService(path string, environ []string, choices map[string][]string) (Service, error) {
	l := newLayer(FromService)
	r := rules{dir: filepath.Dir(path), home: Getenv(environ, "HOME"), environ: environ, registered: choices}
	f := &file{path: path, rules: r, layer: l}
	data, err := load(path)
	if err != nil {
		return Service{}, Problems{{Where: path, Message: reason(err)}}
	}
	var s Service
	f.document(data, func(n ast.Node) {
		f.each(n, "the file", func(name string, v *ast.MappingValueNode) {
			switch name {
			case "parallel":
				n, err := keys.Key{Kind: keys.Int}.Number(v.Value.String())
				if err != nil {
					f.fail(v, "parallel: "+err.Error()+"; 0: no limit")
					return
				}
				s.Parallel = n.(int)
			case "projects":
				s.Projects = f.projects(v)
			default:
				f.fail(v, fmt.Sprintf("unknown key %q%s", name, nearest.DidYouMean(name, "", []string{"parallel", "projects"})))
			}
		})
	})
	if len(l.problems) == 0 && len(s.Projects) == 0 {
		l.fail(path, "has no project; write: projects: [{repo: PATH}]")
	}
	if len(l.problems) > 0 {
		return Service{}, l.problems
	}
	return s, nil
}

// Served returns the project of a checkout in the default service file, or false if the file is missing, wrong or lacks it.
func Served(environ []string, choices map[string][]string, top string) (Project, bool) {
	s, err := ReadService(ServiceFile(environ), environ, choices)
	n := slices.IndexFunc(s.Projects, func(p Project) bool {
		at, err := filepath.EvalSymlinks(p.Repo)
		return err == nil && at == top
	})
	if err != nil || n < 0 {
		return Project{}, false
	}
	return s.Projects[n], true
}

// Otherwise reports that the service's file names another tracker for the checkout than this command uses, or "" if not. It is
// only a hint, because a service may run with another file.
func (p Project) Otherwise(tracker string) string {
	for _, key := range p.keys {
		if name, ok := text(key.Value); ok && key.Key.GetToken().Value == "tracker" && name != tracker && name != "auto" {
			return fmt.Sprintf("a service with %s uses tracker %s for this repository, but this command uses tracker %s",
				p.path, name, tracker)
		}
	}
	return ""
}

// each calls do with each entry of a mapping, and reports duplicate keys.
func (f *file) each(n ast.Node, what string, do func(name string, v *ast.MappingValueNode)) {
	seen := map[string]bool{}
	for _, v := range f.pairs(n, what) {
		name := v.Key.GetToken().Value
		if seen[name] {
			f.fail(v.Key, name+" is set twice")
			continue
		}
		seen[name] = true
		do(name, v)
	}
}

func (f *file) projects(v *ast.MappingValueNode) (list []Project) {
	items, ok := v.Value.(*ast.SequenceNode)
	if !ok {
		f.fail(v, "projects: must be a list")
		return nil
	}
	for _, item := range items.Values {
		p := Project{path: f.path}
		f.each(item, "a project", func(name string, v *ast.MappingValueNode) {
			s, isText := text(v.Value)
			switch {
			case name != "repo" && name != "name":
				p.keys = append(p.keys, v)
			case !isText || s == "":
				f.fail(v, name+": must be text")
			case name == "repo":
				p.Repo = filepath.Clean(keys.Resolve(f.expand(v, s), f.rules.dir, f.rules.home))
			default:
				p.Name = s
			}
		})
		if p.Repo == "" {
			f.fail(item, "a project has no repo; write: repo: PATH")
			continue
		}
		p.Name = cmp.Or(p.Name, filepath.Base(p.Repo))
		f.layer.problems = append(f.layer.problems, p.layer(f.rules).problems...)
		switch {
		case !IsProjectName(p.Name):
			f.fail(item, fmt.Sprintf("project %q needs a name: A to Z, a to z, 0 to 9, . _ - (name: NAME)", p.Name))
		case slices.ContainsFunc(list, func(q Project) bool { return q.Name == p.Name }):
			f.fail(item, fmt.Sprintf("two projects have the name %q; rename one (name: NAME)", p.Name))
		case slices.ContainsFunc(list, func(q Project) bool { return q.Repo == p.Repo }):
			f.fail(item, fmt.Sprintf("two projects have the repository %s; remove one", p.Repo))
		}
		list = append(list, p)
	}
	return list
}

// IsProjectName reports whether name is valid for a project.
func IsProjectName(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name)
}

// layer reads the project's keys, with paths relative to its checkout.
func (p Project) layer(r rules) *layer {
	r.repo = p.Repo
	f := &file{path: p.path, rules: r, layer: newLayer(FromService), seen: map[string]int{}}
	for _, v := range p.keys {
		f.entry(v, "")
	}
	return f.layer
}
